#include "support/simulated_disk.h"

#include "lockstep/base/file.h"

namespace lockstep::test {
namespace {

std::string name_in(const std::string& path) {
  return std::filesystem::path(path).filename();
}

}  // namespace

FileTree read_tree(const std::filesystem::path& place) {
  FileTree tree;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(place)) {
    const std::string path = entry.path().lexically_relative(place);
    tree[path] = entry.is_directory() ? std::nullopt : std::optional(read_file(entry.path()));
  }
  return tree;
}

void write_tree(const std::filesystem::path& place, const FileTree& tree) {
  std::filesystem::remove_all(place);
  std::filesystem::create_directories(place);
  for (const auto& [path, bytes] : tree) {  // directories come before what is in them
    if (bytes) {
      std::ofstream(place / path, std::ios::binary) << *bytes;
    } else {
      std::filesystem::create_directory(place / path);
    }
  }
}

FileTree subtree(const FileTree& tree, const std::string& directory) {
  FileTree part;
  for (const auto& [path, bytes] : tree) {
    if (path.starts_with(directory + "/")) part[path.substr(directory.size() + 1)] = bytes;
  }
  return part;
}

SimulatedDisk::SimulatedDisk(const FileTree& tree) : inodes_{{.is_directory = true}} {
  for (const auto& [path, bytes] : tree)
    add(path, {.is_directory = !bytes, .bytes = bytes.value_or(""), .synced_bytes = bytes.value_or("")});
  for (Inode& inode : inodes_) {
    inode.synced_names = inode.names;
    inode.name_changes.clear();
  }
}

void SimulatedDisk::change(std::string& bytes, const Change& change) {
  if (!change.bytes) {
    bytes.resize(change.offset);
    return;
  }
  bytes.resize(std::max(bytes.size(), change.offset + change.bytes->size()));
  bytes.replace(change.offset, change.bytes->size(), *change.bytes);
}

void SimulatedDisk::change(Names& names, const NameChange& change) {
  for (const auto& [name, inode] : change) {
    if (inode) {
      names[name] = *inode;
    } else {
      names.erase(name);
    }
  }
}

std::optional<std::size_t> SimulatedDisk::find(const std::string& path) const {
  std::size_t inode = 0;
  for (const auto& name : std::filesystem::path(path)) {
    const auto found = inodes_[inode].names.find(name);
    if (found == inodes_[inode].names.end()) return std::nullopt;
    inode = found->second;
  }
  return inode;
}

std::size_t SimulatedDisk::at(const std::string& path) const {
  const auto inode = path.empty() ? std::optional<std::size_t>(0) : find(path);
  if (!inode) throw std::runtime_error("the simulated disk has no '" + path + "'");
  return *inode;
}

std::size_t SimulatedDisk::directory_of(const std::string& path) const {
  return at(std::filesystem::path(path).parent_path());
}

void SimulatedDisk::change_names(std::size_t directory, NameChange names) {
  change(inodes_[directory].names, names);
  inodes_[directory].name_changes.push_back(std::move(names));
}

std::size_t SimulatedDisk::add(const std::string& path, Inode inode) {
  const std::size_t number = inodes_.size();
  const std::size_t directory = directory_of(path);
  inodes_.push_back(std::move(inode));
  change_names(directory, {{name_in(path), number}});
  return number;
}

void SimulatedDisk::apply(const RecordedCall& call) {
  if (call.kind == "create" || call.kind == "mkdir") {
    add(call.path, {.is_directory = call.kind == "mkdir"});
  } else if (call.kind == "write" || call.kind == "truncate") {
    Inode& file = inodes_[at(call.path)];
    const auto bytes = call.kind == "write" ? std::optional(call.bytes) : std::nullopt;
    file.changes.push_back({call.offset, bytes});
    change(file.bytes, file.changes.back());
  } else if (call.kind == "sync") {
    Inode& inode = inodes_[at(call.path)];
    inode.synced_bytes = inode.bytes;
    inode.changes.clear();
    inode.synced_names = inode.names;
    inode.name_changes.clear();
  } else if (call.kind == "remove") {
    at(call.path);
    change_names(directory_of(call.path), {{name_in(call.path), std::nullopt}});
  } else if (call.kind == "rename" && directory_of(call.path) == directory_of(call.to)) {
    change_names(directory_of(call.path),
                 {{name_in(call.path), std::nullopt}, {name_in(call.to), at(call.path)}});
  } else {
    throw std::runtime_error("the simulated disk does not know: " + describe(call));
  }
}

std::string SimulatedDisk::surviving_bytes(const Inode& file, Unsynced kind, Dice& dice) {
  if (kind == Unsynced::kKept) return file.bytes;
  std::string bytes = file.synced_bytes;
  if (kind == Unsynced::kZeros) bytes.resize(file.bytes.size());
  if (kind != Unsynced::kSome) return bytes;
  for (const Change& whole : file.changes) {
    Change some = whole;
    if (dice.chance(0.3)) continue;
    if (some.bytes && dice.chance(0.3))
      some.bytes->resize(static_cast<std::size_t>(dice.whole(0, std::ssize(*some.bytes))));
    change(bytes, some);
  }
  return bytes;
}

SimulatedDisk::Names SimulatedDisk::surviving_names(const Inode& directory, Unsynced kind, Dice& dice) {
  if (kind == Unsynced::kKept) return directory.names;
  Names names = directory.synced_names;
  if (kind == Unsynced::kLast && !directory.name_changes.empty())
    change(names, directory.name_changes.back());
  if (kind != Unsynced::kSome) return names;
  for (const NameChange& one : directory.name_changes) {
    if (dice.chance(0.5)) change(names, one);
  }
  return names;
}

void SimulatedDisk::add_to(FileTree& tree, const std::string& path, std::size_t number, const CrashKind& kind,
                           Dice& dice) const {
  const Inode& inode = inodes_[number];
  if (number != 0)
    tree[path] = inode.is_directory ? std::nullopt : std::optional(surviving_bytes(inode, kind.bytes, dice));
  for (const auto& [name, child] : surviving_names(inode, kind.names, dice))
    add_to(tree, number == 0 ? name : path + "/" + name, child, kind, dice);
}

FileTree SimulatedDisk::after_crash(const CrashKind& kind, Dice& dice) const {
  FileTree tree;
  add_to(tree, "", 0, kind, dice);
  return tree;
}

FileTree SimulatedDisk::tree() const {
  Dice unused(0, 0);
  return after_crash({"", Unsynced::kKept, Unsynced::kKept}, unused);
}

}  // namespace lockstep::test
