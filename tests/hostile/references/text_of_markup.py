# Raises an exception whose text ends elements of XML, JSON and Markdown.
# expect: error raised


def run(hidden_states, weight):
    raise ValueError(']]></failure></testcase><!-- "}]}\n``` \\" \\u0000 %0A&#0;')
