#include "tasks/formats/fetch.h"

#include <archive.h>
#include <archive_entry.h>
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "harness/base/hash.h"
#include "harness/base/rng.h"
#include "tasks/formats/compressed.h"
#include "tasks/formats/download.h"
#include "tests/formats/image_files.h"

namespace spt::formats {
namespace {

using ::testing::HasSubstr;
using testing_files::message_of;
using testing_files::TemporaryFolder;

/// Serves a few files over HTTP on the loopback interface, one connection at a time; knows Range, and can cut a transfer short.
class SmallServer {
 public:
  explicit SmallServer(std::map<std::string, std::string> files, bool ranges = true) : files_(std::move(files)), ranges_(ranges) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    SPT_CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0 && ::listen(listener_, 4) == 0, "no loopback socket");
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~SmallServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  std::string url() const { return fmt::format("http://127.0.0.1:{}/", port_); }
  void cut_after(int64_t bytes) { cut_ = bytes; }  ///< the next transfer only
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void serve() {
    for (;;) {
      const int connection = ::accept(listener_, nullptr, nullptr);
      if (connection < 0) return;
      std::string request;
      char piece[4096];
      while (request.find("\r\n\r\n") == std::string::npos) {
        const ssize_t n = ::recv(connection, piece, sizeof piece, 0);
        if (n <= 0) break;
        request.append(piece, static_cast<size_t>(n));
      }
      answer(connection, request);
      ::shutdown(connection, SHUT_RDWR);
      ::close(connection);
    }
  }
  void answer(int connection, const std::string& request) {
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    const std::string name = request.substr(5, request.find(' ', 5) - 5);
    if (!files_.contains(name)) return send_all(connection, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    const std::string& content = files_.at(name);
    size_t begin = 0;
    const size_t range = request.find("Range: bytes=");
    if (ranges_ && range != std::string::npos) begin = std::stoul(request.substr(range + 13));
    if (begin > 0 && begin >= content.size())
      return send_all(connection, "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    std::string head = begin > 0 ? fmt::format("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {}-{}/{}\r\n", begin,
                                               content.size() - 1, content.size())
                                 : std::string("HTTP/1.1 200 OK\r\n");
    head += fmt::format("Content-Length: {}\r\nConnection: close\r\n\r\n", content.size() - begin);
    const int64_t cut = cut_.exchange(-1);
    send_all(connection, head + content.substr(begin, cut < 0 ? std::string::npos : static_cast<size_t>(cut)));
  }
  static void send_all(int connection, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }

  std::map<std::string, std::string> files_;
  bool ranges_;
  int listener_;
  int port_;
  std::thread thread_;
  std::atomic<int64_t> cut_ = -1;
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
};

std::string random_bytes(size_t n) {
  SplitMix64 draw(n);
  std::string bytes;
  while (bytes.size() < n) bytes += static_cast<char>(draw() & 0xff);
  return bytes;
}

std::string tar_gz(const std::map<std::string, std::string>& members) {
  std::string bytes(1 << 20, '\0');
  size_t used = 0;
  archive* writer = archive_write_new();
  archive_write_add_filter_gzip(writer);
  archive_write_set_format_ustar(writer);
  archive_write_open_memory(writer, bytes.data(), bytes.size(), &used);
  for (const auto& [name, content] : members) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_size(entry, static_cast<int64_t>(content.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_write_header(writer, entry);
    archive_write_data(writer, content.data(), content.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
  bytes.resize(used);
  return bytes;
}

const std::string kOne = random_bytes(3000);
const std::string kTwo = random_bytes(5000);
const std::string kArchive = tar_gz({{"toy-bin/one.bin", kOne}, {"toy-bin/two.bin", kTwo}, {"toy-bin/readme", "no data"}});

Manifest archive_manifest(std::vector<std::string> mirrors) {
  Manifest manifest;
  manifest.task = "toy";
  manifest.folders = {"toy"};
  manifest.files = {{"one.bin", 3000, sha256(kOne)}, {"two.bin", 5000, sha256(kTwo)}};
  manifest.downloads = {{"toy.tar.gz", static_cast<int64_t>(kArchive.size()), sha256(kArchive), {"one.bin", "two.bin"}}};
  manifest.mirrors = std::move(mirrors);
  return manifest;
}

Manifest gzip_manifest(std::vector<std::string> mirrors) {
  Manifest manifest = archive_manifest(std::move(mirrors));
  manifest.downloads = {{"one.bin.gz", 0, "", {"one.bin"}}, {"two.bin.gz", 0, "", {"two.bin"}}};
  return manifest;
}

TEST(Download, GoesOnWhereItWasCut) {
  const TemporaryFolder folder;
  SmallServer server({{"f", kTwo}});
  server.cut_after(2000);
  const auto get = [&] { download(server.url() + "f", folder.path / "f", 5000, sha256(kTwo)); };
  EXPECT_THAT(message_of<DataError>(get), HasSubstr(server.url() + "f"));
  ASSERT_EQ(std::filesystem::file_size(folder.path / "f.part"), 2000u);
  get();
  EXPECT_EQ(read_file(folder.path / "f"), kTwo);
  EXPECT_FALSE(std::filesystem::exists(folder.path / "f.part"));
  EXPECT_THAT(server.requests().at(1), HasSubstr("Range: bytes=2000-"));
}

TEST(Download, StartsAgainWhereTheServerKnowsNoRanges) {
  const TemporaryFolder folder;
  SmallServer server({{"f", kTwo}}, /*ranges=*/false);
  folder.write("f.part", kTwo.substr(0, 1234));
  const std::string refused = message_of<DataError>([&] { download(server.url() + "f", folder.path / "f", 5000, sha256(kTwo)); });
  EXPECT_EQ(refused, "");
  EXPECT_EQ(read_file(folder.path / "f"), kTwo);
}

TEST(Download, PartThatIsWholeOfUnknownSizeIsFetchedAgain) {
  const TemporaryFolder folder;
  SmallServer server({{"f", kTwo}});
  folder.write("f.part", kTwo);
  download(server.url() + "f", folder.path / "f", 0, sha256(kTwo));
  EXPECT_EQ(read_file(folder.path / "f"), kTwo);
}

TEST(Download, OtherContentIsRefusedAndNotKept) {
  const TemporaryFolder folder;
  SmallServer server({{"f", kTwo}});
  EXPECT_THAT(message_of<DataError>([&] { download(server.url() + "f", folder.path / "f", 0, sha256(kOne)); }), HasSubstr("other content"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
}

TEST(Download, FailuresGiveUrlAndReason) {
  const TemporaryFolder folder;
  SmallServer server({});
  EXPECT_THAT(message_of<DataError>([&] { download(server.url() + "absent", folder.path / "f", 0, ""); }),
              ::testing::AllOf(HasSubstr("absent"), HasSubstr("404")));
  EXPECT_THAT(message_of<DataError>([&] { download("http://no-such-host.invalid/f", folder.path / "f", 0, ""); }),
              HasSubstr("no-such-host.invalid"));
  EXPECT_NE(message_of<DataError>([&] { download("gopher://x/f", folder.path / "f", 0, ""); }), "");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
}

TEST(Download, FileUrlsWork) {
  const TemporaryFolder folder;
  folder.write("source", kOne);
  download("file://" + (folder.path / "source").string(), folder.path / "f", 3000, sha256(kOne));
  EXPECT_EQ(read_file(folder.path / "f"), kOne);
}

TEST(Fetch, ArchiveIsVerifiedUnpackedAndRemoved) {
  const TemporaryFolder root;
  SmallServer server({{"toy.tar.gz", kArchive}});
  std::vector<std::string> lines;
  const FetchOptions options{.from = {}, .report = [&](const std::string& line) { lines.push_back(line); }};
  fetch(archive_manifest({server.url()}), root.path, options);
  EXPECT_TRUE(verify(archive_manifest({}), root.path).official());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root.path / "toy"), {}), 2);
  EXPECT_THAT(lines.back(), HasSubstr("complete and verified"));
  fetch(archive_manifest({server.url()}), root.path, options);
  EXPECT_EQ(server.requests().size(), 1u);  // nothing is fetched twice
}

TEST(Fetch, NextMirrorIsTriedAndPackedFilesMayDiffer) {
  const TemporaryFolder root;
  SmallServer empty({});
  SmallServer server({{"one.bin.gz", pack_gzip(kOne)}, {"two.bin.gz", pack_gzip(kTwo.substr(0, 2500)) + pack_gzip(kTwo.substr(2500))}});
  fetch(gzip_manifest({empty.url(), server.url()}), root.path, {});
  EXPECT_TRUE(verify(gzip_manifest({}), root.path).official());
}

TEST(Fetch, FolderWithArchiveOrWithFilesServes) {
  const TemporaryFolder root;
  root.write("usb/toy.tar.gz", kArchive);
  fetch(archive_manifest({"http://no-such-host.invalid/"}), root.path, {.from = (root.path / "usb").string(), .report = {}});
  EXPECT_TRUE(verify(archive_manifest({}), root.path).official());
  const TemporaryFolder& again = root;
  std::filesystem::remove_all(again.path / "toy");
  again.write("other/one.bin", kOne);
  again.write("other/two.bin.gz", pack_gzip(kTwo));
  fetch(archive_manifest({}), again.path, {.from = (again.path / "other").string(), .report = {}});
  EXPECT_TRUE(verify(archive_manifest({}), again.path).official());
}

TEST(Fetch, FailureListsEveryPlaceAndTheWayOut) {
  const TemporaryFolder root;
  SmallServer empty({});
  Manifest manifest = gzip_manifest({"http://no-such-host.invalid/", empty.url()});
  manifest.package = "dataset-toy";
  EXPECT_THAT(message_of<DataError>([&] { fetch(manifest, root.path, {}); }),
              ::testing::AllOf(HasSubstr("no-such-host.invalid"), HasSubstr("404"), HasSubstr("--mirror FOLDER"), HasSubstr("dataset-toy")));
}

TEST(Fetch, WrongContentNeverLands) {
  const TemporaryFolder root;
  SmallServer server({{"one.bin.gz", pack_gzip(kTwo)}, {"two.bin.gz", "no gzip"}});
  EXPECT_NE(message_of<DataError>([&] { fetch(gzip_manifest({server.url()}), root.path, {}); }), "");
  EXPECT_TRUE(std::filesystem::is_empty(root.path / "toy"));
  root.write("usb/one.bin", kTwo);
  EXPECT_NE(message_of<DataError>([&] { fetch(gzip_manifest({}), root.path, {.from = (root.path / "usb").string(), .report = {}}); }), "");
  EXPECT_TRUE(std::filesystem::is_empty(root.path / "toy"));
}

TEST(Fetch, FileOfTheUserIsNotOverwritten) {
  const TemporaryFolder root;
  root.write("toy/one.bin", "mine");
  EXPECT_THAT(message_of<DataError>([&] { fetch(archive_manifest({}), root.path, {}); }), HasSubstr("move it away"));
  EXPECT_EQ(read_file(root.path / "toy/one.bin"), "mine");
}

TEST(Fetch, DamagedArchiveIsADataErrorAtEveryCut) {
  const TemporaryFolder root;
  Manifest manifest = archive_manifest({});
  for (size_t n = 0; n + 1 < kArchive.size(); n += 97) {
    root.write("usb/toy.tar.gz", kArchive.substr(0, n));
    try {
      fetch(manifest, root.path, {.from = (root.path / "usb").string(), .report = {}});
      EXPECT_TRUE(verify(manifest, root.path).official()) << n;  // both files may be whole before the cut
    } catch (const DataError&) {
    }
    std::filesystem::remove_all(root.path / "toy");
  }
}

}  // namespace
}  // namespace spt::formats
