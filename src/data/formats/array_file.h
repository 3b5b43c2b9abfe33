// Files that hold one array each, whose first dimension counts the records: what their formats share. A
// format adds how its header is read.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dense_source.h"
#include "lockstep/base/types.h"
#include "record_file.h"

namespace lockstep {

/// A named field of the records of an array.
struct ArrayField {
  std::string name;
  std::string type;          ///< its type in the words of the format
  std::vector<Index> shape;  ///< shape of its numbers; empty for one number
  DensePiece piece;          ///< without an element if it holds no numbers
};

struct ArrayFile {
  RecordFile records;
  std::vector<Index> sizes;  ///< sizes of all dimensions; the first is the number of records
  const Element* element = nullptr;
  bool fortran_order = false;  ///< the first dimension varies fastest
  Index elements_per_record = 1;
  std::vector<ArrayField> fields = {};  ///< instead of an element: what is used of records with named fields
  bool names_fields = false;            ///< the path says which
};

/// Uses these of the fields: sets fields and, behind the number of records, sizes.
void use_fields(ArrayFile& file, std::vector<ArrayField> fields);

/// Fills sizes (at least one), element and records.offset; or, for named fields, fields and record_bytes
/// instead of the element. Errors: DataError.
using ReadArrayHeader = std::function<void(ByteStream& stream, ArrayFile& file)>;

/// Reads the header, and checks it against the size of the file. Errors: DataError.
ArrayFile open_array_file(const std::string& path, const ReadArrayHeader& read_header);

/// Opens an array that the config key (or flag) names.
using OpenArray = std::function<ArrayFile(const std::string& path, const std::string& key)>;

/// A format of data sets that are an array of features and, if there is one, an array of labels. `noun`: what
/// an array is to its users, "file".
FormatEntry array_format(std::string name, std::string help, const std::vector<std::string>& extensions,
                         const std::string& noun, const OpenArray& open);

}  // namespace lockstep
