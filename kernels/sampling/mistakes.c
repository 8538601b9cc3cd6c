#include "kernels/sampling/mistakes.h"

#include "kernels/core/mistakes.h"
#include "kernels/core/dtype_convert.h"

/* Gives every row the largest top_k of the batch. If the largest top_k drops no token, the mistake has the same effect
 * as ignoring top_k. */
static bool largest_of_batch(struct op_variation *v, const struct op_mistake *mistake)
{
	struct tensor *values = variation_change(v, variation_input(v, mistake->role));
	const int probs = variation_input(v, "probs");
	double most = 0;

	for (int64_t i = 0; values != NULL && i < values->elements; i++)
		most = i == 0 || dtype_load(values->data, values->dtype, i) > most ? dtype_load(values->data, values->dtype, i) : most;
	for (int64_t i = 0; values != NULL && i < values->elements; i++)
		dtype_store(values->data, values->dtype, i, most);
	return values != NULL && probs >= 0 && most < (double)v->in[probs].shape[1];
}

/* Suppose that a reference with mistake A keeps all tokens that a reference with mistake B keeps, and more tokens. All
 * draws of B are then also possible with A. Therefore A stands after B in this table, and the member `narrower` of A
 * lists B. */
const struct op_mistake sampling_mistakes[] = {
    {.says = "top_k + 1 tokens were kept, not top_k", .in_oracle = SAMPLING_K_MORE},
    {.says = "top_k - 1 tokens were kept, not top_k", .in_oracle = SAMPLING_K_LESS},
    {.says = "the largest top_k of the batch was applied to every row", .before = largest_of_batch, .role = "top_k", .in_oracle = SAMPLING_K_OF_BATCH,
     .narrower = {SAMPLING_K_MORE}},
    {.says = "top_p was applied to probabilities that were not renormalised after top_k", .in_oracle = SAMPLING_P_OF_WHOLE},
    {.says = "top_k was ignored", .in_oracle = SAMPLING_K_IGNORED,
     .narrower = {SAMPLING_K_MORE, SAMPLING_K_OF_BATCH, SAMPLING_P_OF_WHOLE}},
    {.says = "top_k was limited to 64", .in_oracle = SAMPLING_K_64},
    {.says = "top_k was limited to 256", .in_oracle = SAMPLING_K_256},
    {.says = "top_k was limited to 1024", .in_oracle = SAMPLING_K_1024},
    {.says = "the token at which the cumulative probability crosses top_p was dropped", .in_oracle = SAMPLING_CROSSING_DROPPED},
    {.says = "the token at which the cumulative probability crosses top_p was dropped, even if no other token was left",
     .in_oracle = SAMPLING_CROSSING_DROPPED_ALONE},
    {.says = "the token after the one at which the cumulative probability crosses top_p was kept", .in_oracle = SAMPLING_CROSSING_MORE},
    {.says = "a top_p above 0.95 was ignored", .in_oracle = SAMPLING_P_95},
    {.says = "a top_p of 1 kept only the most likely token", .in_oracle = SAMPLING_P_ONE_ALONE},
    {.says = "top_p was doubled", .in_oracle = SAMPLING_P_DOUBLED, .narrower = {SAMPLING_CROSSING_MORE, SAMPLING_P_95, SAMPLING_P_OF_WHOLE}},
    {.says = "top_p was 1 - p", .in_oracle = SAMPLING_P_REST},
    {.says = "top_p was ignored", .in_oracle = SAMPLING_P_IGNORED,
     .narrower = {SAMPLING_CROSSING_MORE, SAMPLING_P_95, SAMPLING_P_DOUBLED, SAMPLING_P_OF_WHOLE}},
    {.says = "min_p was squared", .in_oracle = SAMPLING_MIN_P_SQUARED},
    {.says = "min_p was used as an absolute probability, not as a fraction of the largest probability",
     .in_oracle = SAMPLING_MIN_P_ABSOLUTE},
    {.says = "min_p was used as a fraction of the sum of the probabilities, not of the largest probability",
     .in_oracle = SAMPLING_MIN_P_OF_SUM},
    {.says = "min_p was ignored", .in_oracle = SAMPLING_MIN_P_IGNORED, .narrower = {SAMPLING_MIN_P_SQUARED}},
    {.says = "only the most likely token was kept (greedy)", .in_oracle = SAMPLING_GREEDY},
    {.says = "the kept probabilities were replaced by their square roots", .in_oracle = SAMPLING_ROOTS},
    {.says = "the kept probabilities were squared", .in_oracle = SAMPLING_SQUARES},
    {.says = "the kept tokens were given equal probabilities", .in_oracle = SAMPLING_DRAWN_EVENLY},
    {.says = "softmax was applied to the kept probabilities", .in_oracle = SAMPLING_SOFTMAX},
    {.says = "the kept probabilities were not divided by their sum", .in_oracle = SAMPLING_NOT_DIVIDED},
    {.says = "the kept probabilities were divided by their sum over all rows", .in_oracle = SAMPLING_SUM_OF_BATCH},
    {.says = "the kept probabilities were added up in bfloat16", .in_oracle = SAMPLING_SUM_BFLOAT16},
    {.says = "the returned probabilities were in descending order, not in the order of the vocabulary", .in_oracle = SAMPLING_IN_ORDER},
    {.says = "the last half of the vocabulary was left out", .in_oracle = SAMPLING_HALF_VOCABULARY},
    {.says = "the last token of the vocabulary was left out", .in_oracle = SAMPLING_NO_LAST},
    {.says = "the first token of the vocabulary was left out", .in_oracle = SAMPLING_NO_FIRST},
    {.says = "the first row's top_k was applied to every row", .before = before_first, .role = "top_k"},
    {.says = "the first row's top_p was applied to every row", .before = before_first, .role = "top_p"},
    {.says = "the first row's min_p was applied to every row", .before = before_first, .role = "min_p"},
    {.says = NULL},
};
