#!/bin/sh
# `reftest report FILE.html` writes one page with the verdicts that `reftest status` prints. The page needs no network,
# and no text of the dataset becomes markup. If Chromium is installed, the test opens the page in Chromium.
. "$(dirname "$0")/../harness.sh"
given tiny_norm rmsnorm_h128
sed 's/"name": "tiny_norm"/"name": "raises"/; s/\\n    return/\\n    raise RuntimeError(\\"<\/script><img src=x onerror=document.title=1>\\")\\n    return/' \
	definitions/rmsnorm/tiny_norm.json >definitions/rmsnorm/raises.json
sed 's/"name": "tiny_norm"/"name": "wrong"/; s/EPSILON = 1e-6/EPSILON = 1e-2/' definitions/rmsnorm/tiny_norm.json >definitions/rmsnorm/wrong.json
run verify rmsnorm_h128 raises wrong
expect_exit 1
run report page.html
expect_exit 0
expect_says 'page.html: 4 definitions, '
"$python" -I -S - page.html "$(basename "$(pwd -P)")" <<'P' || fail "the page is not what it should be"
import json, re, sys
page = open(sys.argv[1]).read()
assert not re.search(r"(src|href)=|https?://(?!www.w3.org/)|@import|url\(", re.sub(r'(?s)<script id="data".*?</script>', "", page)), "it loads something"
assert len(re.findall("</script>", page)) == 2
data = json.loads(re.search(r'(?s)<script id="data" type="application/json">(.*?)</script>', page).group(1))
of = {d["name"]: d for d in data["definitions"]}
assert [of[n]["status"] for n in ("raises", "rmsnorm_h128", "tiny_norm")] == ["error", "passed", "unknown"], of
assert 0 <= of["rmsnorm_h128"]["margin"] <= 1 and of["tiny_norm"]["margin"] == "nan", of
assert of["tiny_norm"]["bad"] == [] and of["tiny_norm"]["history"] == [], of
assert len(of["rmsnorm_h128"]["history"]) == 1 and of["rmsnorm_h128"]["history"][0]["with"].startswith("torch 2."), of
assert "<img" in of["raises"]["bad"][0]["message"], of["raises"]["bad"][0]
wrong = [case for case in of["wrong"]["bad"] if case["status"] == "failed"][0]
drawn = wrong["differences"][0]
assert of["wrong"]["status"] == "failed" and of["wrong"]["margin"] > 1, of["wrong"]
assert drawn["output"] == wrong["outputs"][0]["name"] and 1 <= len(drawn["heat"]) <= 32, drawn
assert sum(drawn["histogram"]) == wrong["outputs"][0]["elements"] and sum(drawn["histogram"][17:]) > 0, drawn
assert data["folder"] == sys.argv[2] and "root" not in data, data["folder"]
assert [f["definitions"] for f in data["coverage"]["families"] if f["family"] == "rmsnorm"] == [4]
P
cp page.html before.html
run status
expect_says 'error    rmsnorm/raises' 'passed   rmsnorm/rmsnorm_h128' 'unknown  rmsnorm/tiny_norm'

# An edit makes the definition stale, so the page shows no margins for it.
edit definitions/rmsnorm/rmsnorm_h128.json 'EPSILON = 1e-6' 'EPSILON = 1e-06'
run report page.html
expectations=$((expectations + 1))
grep -q '"name": "rmsnorm_h128", "op_type": "rmsnorm", "status": "stale".*"history": \[\], ' page.html || fail "an edited definition is not stale"

# There was only one run, so `drift` has no earlier margins with which it could compare.
run drift
expect_exit 0
expect_says '4 definitions have fewer than two verdicts to compare'
run drift --format json nothing
expect_exit 2
run report
expect_exit 2
run report before.html/page.html
expect_exit 4
cp definitions/rmsnorm/raises.json "$work/kept"
run report definitions/rmsnorm/raises.json
expect_exit 2
cmp -s definitions/rmsnorm/raises.json "$work/kept" || fail "the page has replaced a definition"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || skip "no Chromium is installed, so nothing opens the page; the rest of the test has passed"
"$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/browser" --dump-dom \
	"file://$root/before.html#rmsnorm/raises" >"$work/dom" 2>"$work/browser-log" || fail "$(tail -3 "$work/browser-log")"
expectations=$((expectations + 4))
grep -q '<title>reftest report</title>' "$work/dom" || fail "the page has another title"
grep -q '1 of 4</span>' "$work/dom" || fail "the table does not show the definition of the link"
grep -q '&lt;img src=x onerror' "$work/dom" || fail "the details of the failure are not open"
! sed 's/<script id="data".*//' "$work/dom" | grep -q '<img' || fail "a text became markup"
