/* expired_summaries - the key of a fact (store_fact) that changes whenever a stored summary of a definition may say
 * "passed" although one of its cases now has another verdict: a passed verdict was replaced by another outcome, or a
 * verdict was imported for a case that had one. The value must be a part of summary.context (cache/store.h), so that
 * older summaries no longer count. */
#ifndef REFTEST_CACHE_EXPIRED_SUMMARIES_H
#define REFTEST_CACHE_EXPIRED_SUMMARIES_H

#define FACT_SUMMARIES_EXPIRED "summaries expired"

#endif
