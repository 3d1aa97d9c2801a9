#pragma once

#include <cmath>
#include <string>

#include "tests/formats/image_files.h"

namespace spt::testing_files {

/// Signals of `samples` rows at 125 Hz in the release's layout, with its columns in another order for even ids.
inline std::string bidmc_signals(int id, int samples) {
  std::string text = id % 2 == 0 ? "Time [s], RESP, PLETH, V, AVR, II\n" : "Time [s], II, V, PLETH, AVR, RESP\n";
  for (int i = 0; i < samples; ++i) {
    const std::string ppg = fmt::format("{:.5f}", 0.5 + 0.4 * std::sin(0.01 * id * i)), ecg = fmt::format("{:.5f}", 0.001 * (i % 100) + id);
    text += id % 2 == 0 ? fmt::format("{:.3f},0.1,{},0.2,0.3,{}\n", i * 0.008, ppg, ecg)
                        : fmt::format("{:.3f},{},0.2,{},0.3,0.1\n", i * 0.008, ecg, ppg);
  }
  return text;
}

/// HR = 60 + id + second/100, RESP missing for the first 40 s, SpO2 = 90 + id.
inline std::string bidmc_numerics(int id, int seconds) {
  std::string text = "Time [s], HR, PULSE, RESP, SpO2\n";
  for (int s = 0; s < seconds; ++s)
    text += fmt::format("{},{},93,{},{}\n", s, 60 + id + 0.01 * s, s < 40 ? std::string("NaN") : "20", 90 + id);
  return text;
}

/// `recordings` of 70 s: with a stride of 1,000 samples each has 5 windows (3 with a respiratory rate).
inline void write_bidmc(const TemporaryFolder& root, int recordings = 10) {
  for (int id = 1; id <= recordings; ++id) {
    root.write(fmt::format("bidmc/bidmc_csv/bidmc_{:02}_Signals.csv", id), bidmc_signals(id, 8751));
    root.write(fmt::format("bidmc/bidmc_csv/bidmc_{:02}_Numerics.csv", id), bidmc_numerics(id, 71));
    root.write(fmt::format("bidmc/bidmc_csv/bidmc_{:02}_Fix.txt", id), "Age: 50\n");
  }
}

/// A TSER line: window k, its PPG all k, its ECG counting up.
inline std::string ts_line(int k, const std::string& target, int length = 4000) {
  std::string ppg, ecg;
  for (int i = 0; i < length; ++i) {
    ppg += fmt::format("{}{}", i == 0 ? "" : ",", k);
    ecg += fmt::format("{}{}.5", i == 0 ? "" : ",", i);
  }
  return ppg + ":" + ecg + ":" + target + "\n";
}

inline std::string ts_file(int first, int n) {
  std::string text = "#a comment\n@problemName BIDMC32HR\n@targetlabel true\n@data\n";
  for (int k = first; k < first + n; ++k) text += ts_line(k, std::to_string(60 + k));
  return text;
}

inline std::string npy_file(const std::string& descr, const std::string& shape, const std::string& values,
                            const std::string& order = "False") {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  header.resize((header.size() + 11 + 63) / 64 * 64 - 11 + 1, ' ');
  header.back() = '\n';
  std::string bytes = "\x93NUMPY";
  bytes += '\x01';
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header + values;
}

template <class T>
std::string raw_numbers(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace spt::testing_files
