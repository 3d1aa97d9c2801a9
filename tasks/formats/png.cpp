#include "tasks/formats/png.h"

#include <png.h>

#include <algorithm>
#include <cstring>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "tasks/formats/image.h"

namespace spt::formats {
namespace {

constexpr int64_t kMostPngBytes = int64_t{64} << 20;
constexpr int kPngCompression = 6;

/// What libpng's callbacks see. libpng leaves by longjmp(): no object with a destructor may live in a function that it jumps out of.
struct PngInput {
  const char* bytes;
  size_t size;
  size_t offset = 0;
  char message[160] = "";
};

[[noreturn]] void png_failed(png_structp png, png_const_charp message) {
  auto* input = static_cast<PngInput*>(png_get_error_ptr(png));
  std::strncpy(input->message, message, sizeof input->message - 1);
  png_longjmp(png, 1);
}

void png_warned(png_structp, png_const_charp) {}

void png_read_bytes(png_structp png, png_bytep to, size_t n) {
  auto* input = static_cast<PngInput*>(png_get_io_ptr(png));
  if (n > input->size - input->offset) png_error(png, "the file ends here");
  std::memcpy(to, input->bytes + input->offset, n);
  input->offset += n;
}

/// Header, with everything set up to give 8-bit rows of 1 or 3 channels. False: input.message says why.
bool start_png(png_structp png, png_infop info, PngInput& input, int64_t max_side, Picture& picture) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_user_limits(png, static_cast<png_uint_32>(max_side), static_cast<png_uint_32>(max_side));
  png_set_read_fn(png, &input, png_read_bytes);
  png_read_info(png, info);
  if (png_get_bit_depth(png, info) > 8) png_error(png, "16 bits a channel");
  png_set_expand(png);
  png_set_strip_alpha(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  picture.height = png_get_image_height(png, info);
  picture.width = png_get_image_width(png, info);
  picture.channels = png_get_channels(png, info);
  return true;
}

bool finish_png(png_structp png, png_bytepp rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_read_image(png, rows);
  png_read_end(png, nullptr);
  return true;
}

struct PngReader {
  explicit PngReader(PngInput& input)
      : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, &input, png_failed, png_warned)), info(png_create_info_struct(png)) {
    SPT_CHECK(png != nullptr && info != nullptr, "libpng does not start");
  }
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  png_structp png;
  png_infop info;
};

std::vector<png_bytep> row_pointers(Picture& picture) {
  std::vector<png_bytep> rows;
  for (int64_t y = 0; y < picture.height; ++y) rows.push_back(picture.pixels.data() + y * picture.width * picture.channels);
  return rows;
}

void append_png_bytes(png_structp png, png_bytep bytes, size_t n) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(bytes), n);
}

void flush_png(png_structp) {}

}  // namespace

std::string encode_png(const Picture& picture) {
  SPT_CHECK((picture.channels == 1 || picture.channels == 3) && picture.height > 0 && picture.width > 0, "a picture of {} x {} x {}",
            picture.height, picture.width, picture.channels);
  SPT_CHECK(static_cast<int64_t>(picture.pixels.size()) == picture.height * picture.width * picture.channels, "a picture of {} bytes",
            picture.pixels.size());
  std::string bytes;
  png_structp png = png_create_write_struct(
      PNG_LIBPNG_VER_STRING, nullptr, [](png_structp, png_const_charp message) { SPT_CHECK(false, "libpng: {}", message); }, png_warned);
  png_infop info = png_create_info_struct(png);
  SPT_CHECK(png != nullptr && info != nullptr, "libpng does not start");
  png_set_write_fn(png, &bytes, append_png_bytes, flush_png);
  png_set_compression_level(png, kPngCompression);
  png_set_IHDR(png, info, static_cast<png_uint_32>(picture.width), static_cast<png_uint_32>(picture.height), 8,
               picture.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  for (int64_t y = 0; y < picture.height; ++y) png_write_row(png, picture.pixels.data() + y * picture.width * picture.channels);
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

Picture decode_grey_png(std::string_view bytes, int64_t max_side, std::string_view where) {
  PngInput input{.bytes = bytes.data(), .size = bytes.size()};
  if (bytes.empty()) throw DataError("{}: an empty file, no PNG", where);
  PngReader reader(input);
  Picture picture;
  const auto failed = [&] {
    return DataError("{}: no whole PNG of at most {} x {} pixels: {} (at byte {})", where, max_side, max_side, input.message, input.offset);
  };
  if (!start_png(reader.png, reader.info, input, max_side, picture)) throw failed();
  SPT_CHECK(picture.channels == 1 || picture.channels == 3, "libpng gives {} channels", picture.channels);
  picture.pixels.resize(static_cast<size_t>(picture.height * picture.width * picture.channels));
  std::vector<png_bytep> rows = row_pointers(picture);
  if (!finish_png(reader.png, rows.data())) throw failed();
  if (picture.channels == 1) return picture;
  Picture grey{.height = picture.height, .width = picture.width, .channels = 1, .pixels = {}};
  for (size_t i = 0; i < picture.pixels.size(); i += 3)
    grey.pixels.push_back(luma(picture.pixels[i], picture.pixels[i + 1], picture.pixels[i + 2]));
  return grey;
}

Picture read_grey_png(const std::filesystem::path& file, int64_t max_side) {
  const std::string where = fmt::format("'{}'", file.string());
  std::error_code problem;
  const auto size = std::filesystem::file_size(file, problem);
  if (problem) throw DataError("{}: cannot be read: {}", where, problem.message());
  if (static_cast<int64_t>(size) > kMostPngBytes) throw DataError("{}: {} bytes are too many for an image of this data set", where, size);
  return decode_grey_png(read_file(file), max_side, where);
}

}  // namespace spt::formats
