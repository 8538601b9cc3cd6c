# Raises an exception whose text contains characters that end elements of XML, strings of JSON and blocks of Markdown.
# expect: error raised


def run(hidden_states, weight):
    raise ValueError(']]></failure></testcase><!-- "}]}\n``` \\" \\u0000 %0A&#0;')
