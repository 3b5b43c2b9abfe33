// A disk as a crash of the machine may leave it. It is given the calls of a program one by one, and knows of
// each file and of each directory what was synced and what was done to it since: bytes that were written to a
// file, and names that were made, changed or removed in a directory. A crash loses these changes in whole or
// in part.
//
// It promises no more than POSIX does: a sync of a file keeps its bytes, not its name; a sync of a directory
// keeps the names in it, not what the files hold, nor the directory's own name; and what was done since the
// last sync may survive in any order. A rename is done or not, never half.
#pragma once

#include "support/file_recording.h"
#include "support/random_data.h"

namespace lockstep::test {

/// Paths below a place, with the bytes of each file; nothing for a directory.
using FileTree = std::map<std::string, std::optional<std::string>>;

FileTree read_tree(const std::filesystem::path& place);
/// Removes what is there.
void write_tree(const std::filesystem::path& place, const FileTree& tree);
/// The files below `directory`, with paths from there on.
FileTree subtree(const FileTree& tree, const std::string& directory);

/// What becomes of changes that were not synced.
enum class Unsynced {
  kLost,
  kKept,
  kZeros,  ///< files have the length that they had, with zeros where changes are lost
  kSome,   ///< each survives or not, writes also in part
  kLast,   ///< the last of each directory survives, without those before it
};
struct CrashKind {
  const char* name;
  Unsynced names;  ///< of directories; not kZeros
  Unsynced bytes;  ///< of files; not kLast
};

class SimulatedDisk {
 public:
  /// All of it is synced.
  explicit SimulatedDisk(const FileTree& tree);

  /// Errors: std::runtime_error for a call that cannot be on this disk.
  void apply(const RecordedCall& call);
  /// What is there after a crash now. `dice` decides what survives of kSome.
  FileTree after_crash(const CrashKind& kind, Dice& dice) const;
  /// What is there now.
  FileTree tree() const;

 private:
  struct Change {  // of a file: a write, or where there are no bytes a cut
    std::size_t offset;
    std::optional<std::string> bytes;
  };
  using Names = std::map<std::string, std::size_t>;
  using NameChange = std::map<std::string, std::optional<std::size_t>>;  // nothing: the name is removed
  struct Inode {
    bool is_directory = false;
    std::string bytes = {}, synced_bytes = {};
    std::vector<Change> changes = {};
    Names names = {}, synced_names = {};
    std::vector<NameChange> name_changes = {};
  };

  static void change(std::string& bytes, const Change& change);
  static void change(Names& names, const NameChange& change);
  std::optional<std::size_t> find(const std::string& path) const;
  std::size_t at(const std::string& path) const;
  std::size_t directory_of(const std::string& path) const;
  void change_names(std::size_t directory, NameChange change);
  std::size_t add(const std::string& path, Inode inode);
  static std::string surviving_bytes(const Inode& file, Unsynced kind, Dice& dice);
  static Names surviving_names(const Inode& directory, Unsynced kind, Dice& dice);
  void add_to(FileTree& tree, const std::string& path, std::size_t inode, const CrashKind& kind,
              Dice& dice) const;

  std::vector<Inode> inodes_;  // the first is the place
};

}  // namespace lockstep::test
