#!/bin/sh
# The MCP client from PyPI connects to `reftest serve`, lists its tools, and calls them.
. "$(dirname "$0")/../harness.sh"
[ "$device" = cpu ] || skip "the CPU suffices"
mcp=$top/.venv-tests/bin/python
"$mcp" -c 'import mcp' 2>/dev/null || fail "there is no mcp: tools/setup.sh --tests installs it"
given tiny_norm
step='the MCP client'
cat >"$work/client.py" <<'P'
import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

reftest, root, python = sys.argv[1:]

def text(answer):
    assert len(answer.content) == 1 and answer.content[0].type == "text", answer
    return answer.content[0].text

async def main():
    server = StdioServerParameters(command=reftest, args=["serve", "--root", root, "--device", "cpu", "--python", python])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        hello = await session.initialize()
        assert hello.server_info.name == "reftest", hello
        await session.send_ping()
        tools = (await session.list_tools()).tools
        assert [t.name for t in tools] == ["verify", "verify_text", "explain", "diff", "list", "status"], tools
        listed = json.loads(text(await session.call_tool("list", {})))
        assert [d["name"] for d in listed["definitions"]] == ["tiny_norm"], listed
        report = json.loads(text(await session.call_tool("verify", {"names": ["tiny_norm"], "sizes": "small"})))
        assert report["summary"]["passed"] == 1 and report["summary"]["exit"] == 0, report["summary"]
        answer = await session.call_tool("explain", {"names": ["tiny_norm"]})
        assert not answer.is_error and text(answer).startswith("rmsnorm/tiny_norm is "), answer
        answer = await session.call_tool("explain", {"names": ["nothing"]})
        assert answer.is_error and "no definition 'nothing'" in text(answer), answer

asyncio.run(main())
P
PYTHONPATH='' timeout 300 "$mcp" "$work/client.py" "$reftest" "$root" "$python" >"$work/out" 2>"$work/err" && status=0 || status=$?
expectations=$((expectations + 1))
expect_exit 0
