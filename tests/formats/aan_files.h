#pragma once

#include <string>

#include "tests/formats/image_files.h"

namespace spt::testing_files {

/// Five columns as in Long Range Arena's files, with texts of the published kind (bytes shown as Python shows them).
inline std::string aan_line(const std::string& label, const std::string& first, const std::string& second) {
  return label + "\tP08-1064\tW00-0712\t" + first + "\t" + second + "\n";
}

/// 6 train, 3 eval and 2 test pairs of five texts.
inline void write_aan(const TemporaryFolder& root) {
  const std::string a = "A Tree Model", b = "\"Knowledge \"\"Free\"\" Induction\"", c = "caf\xc3\xa9", d = "zz", e = "only in test";
  root.write("aan/new_aan_pairs.train.tsv", aan_line("1.0", a, b) + aan_line("0.0", b, c) + aan_line("1", c, a) + aan_line("0", d, d) +
                                                aan_line("1.0", a, c) + aan_line("0.0", a, d));
  root.write("aan/new_aan_pairs.eval.tsv", aan_line("1.0", a, b) + aan_line("0.0", d, c) + aan_line("1.0", d, b));
  root.write("aan/new_aan_pairs.test.tsv", aan_line("0.0", e, a) + aan_line("1.0", a, b));
}

/// The stand-in's layout: four papers; 4, 2 and 2 pairs.
inline void write_scisummnet(const TemporaryFolder& root) {
  for (const char* id : {"P07-1049", "P02-1017", "W95-0107", "C92-3150"})
    root.write(std::string("aan/aan_scisummnet/papers/") + id + ".txt", std::string(id) + " text\n");
  root.write("aan/aan_scisummnet/pairs.train.tsv",
             "1\tP07-1049\tP02-1017\n0\tW95-0107\tC92-3150\n1\tC92-3150\tP02-1017\n0\tP02-1017\tP07-1049\n");
  root.write("aan/aan_scisummnet/pairs.eval.tsv", "1\tP07-1049\tC92-3150\n0\tW95-0107\tP02-1017\n");
  root.write("aan/aan_scisummnet/pairs.test.tsv", "1\tP07-1049\tW95-0107\n0\tW95-0107\tP07-1049\n");
}

}  // namespace spt::testing_files
