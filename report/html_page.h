/* html_page - writes a run as one HTML page that needs no network. The page is report/page.html with the data of the
 * run as JSON in a script element. Text from the dataset never becomes markup: '<', '>' and '&' are escaped in the
 * JSON, and the script of the page inserts strings only as text nodes, never as HTML. The script has lists of the names
 * of all statuses: GROUPS (their colours) and SEVERITY (their order). tests/unit/test_html_page.c compares them with
 * dataset/verdict.c. */
#ifndef REFTEST_REPORT_HTML_PAGE_H
#define REFTEST_REPORT_HTML_PAGE_H

#include "base/buf.h"
#include "engine/coverage.h"
#include "engine/run.h"

struct html_page {
	const char *version; /* the version of reftest */
	int64_t made;	     /* Unix seconds */
};

/* Appends the data of a finished run as a JSON object. run_options.details must be true, so that every result has its
 * list of cases. */
void html_page_data(const struct html_page *page, const struct run *run, const struct coverage *coverage,
		    struct buf *out);

/* Appends the page. `data` is the JSON that html_page_data wrote. */
void html_page_write(const struct buf *data, struct buf *out);

#endif
