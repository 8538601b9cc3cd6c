"""providers - prints a Markdown table of the results and times of other libraries' ground truths: python3
bench/providers.py FILE…

Each FILE is the output of `reftest verify --ground-truth all --format json`. For each op family, the table has a row
for each library that was tried for a case of the family:

    cases     number of cases for which the library computed a ground truth
    agreed    number of cases in which the library agreed with the other ground truths
    margin    the largest |library - builtin| / bound over the cases for which both ground truths were computed
    compile   the longest preparation of a case (imports, compilation and first launches), in seconds
    ms        the median time of a case, over cases without preparation

If the library computed no case, the row contains the reason why. Below the table, the program prints why other
libraries were not tried.
"""

import json
import statistics
import sys

COLUMNS = ("family", "ground truth", "version", "cases", "agreed", "margin", "compile, s", "ms", "empty because")


def stands_alone(case, name):
    """Returns whether the ground truth `name` disagreed with the others. A message about a disagreement names the
    ground truth that disagrees. If the message names none, all ground truths of the case disagreed."""
    message = case["message"] or ""
    if case["reason"] != "ground_truths_disagree":
        return False
    return message.startswith(name + " is the outlier") or " is the outlier" not in message or "no single one" in message


class Cell:
    def __init__(self):
        self.version, self.reasons, self.margins, self.seconds, self.prepared = None, {}, [], [], []
        self.cases = self.agreed = 0

    def add(self, case, witness):
        self.version = (witness["version"] or "").partition(" (table")[0]
        if witness["passed_over"] is not None:
            reason = witness["passed_over"].splitlines()[0]
            self.reasons[reason] = self.reasons.get(reason, 0) + 1
            return
        self.cases += 1
        self.agreed += not stands_alone(case, witness["name"])
        self.prepared.append(witness["prepared"])
        if witness["prepared"] == 0:
            self.seconds.append(witness["seconds"])
        if "margin" in witness:
            self.margins.append(float(witness["margin"]))  # an infinite margin is the string "inf"

    def columns(self):
        reason = "; ".join("%s (%d)" % (text, count) for text, count in sorted(self.reasons.items()))
        if self.cases == 0:
            return (self.version, "0", "", "", "", "", reason)
        return (self.version, str(self.cases), "yes" if self.agreed == self.cases else "%d of %d" % (self.agreed, self.cases),
                "%.3g" % max(self.margins) if self.margins else "", "%.0f" % max(self.prepared),
                "%.2g" % (1000 * statistics.median(self.seconds)) if self.seconds else "", reason)


def read(paths):
    """Reads the files. Returns two dicts: the table's cells by (family, library), and the families by (library, reason)
    for the libraries that were not tried."""
    cells, unasked = {}, {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        seen = set()
        for definition in report["definitions"]:
            seen.add(definition["op_type"])
            for case in definition["cases"]:
                for witness in case["witnesses"]:
                    if witness["name"] != "builtin":
                        cells.setdefault((definition["op_type"], witness["name"]), Cell()).add(case, witness)
        for family, whys in report.get("ground_truths", {}).get("families", {}).items():
            for name, why in whys.items():
                if family in seen and why is not None:
                    unasked.setdefault((name, why), set()).add(family)
    return cells, unasked


def words(text):
    return text.replace("|", "\\|")


def main():
    cells, unasked = read(sys.argv[1:])
    print("| %s |\n|%s" % (" | ".join(COLUMNS), "---|" * len(COLUMNS)))
    for (family, name), cell in sorted(cells.items()):
        print("| %s |" % " | ".join(words(column) for column in (family, name, *cell.columns())))
    if unasked:
        print("\nNot asked:\n")
    for (name, why), families in sorted(unasked.items()):
        print("- %s: %s (%s)" % (name, words(why), ", ".join(sorted(families))))


if __name__ == "__main__":
    main()
