# What can stand at the end of the words "$@" of a command line, the last of which is being typed. Sets kind: file,
# directory and config are such files; words and list (of them, between commas) are those of values, each with its help
# in helps; anything else is not known.
_trainer_ask() {
  local flag= command=trainer last=
  while [ $# -gt 1 ]; do
    if [[ -n $flag ]]; then
      flag=
    elif [[ $1 == -* ]]; then
      flag=$1 kind=
      _trainer_rows
      [[ $kind != none ]] || flag=
    elif [[ $command == trainer ]]; then
      command=$1
    fi
    shift
  done
  last=$1 kind=words values=() helps=()
  [[ -z $flag ]] || kind=
  _trainer_rows
}

# A row of the table: the commands that it is for, a flag or a word that can be typed, the kind of its value, its help,
# and the values that are known. A row without a word says what stands after the command.
_trainer_row() {
  local word=$2 here=
  [[ $1 != '*' && " $1 " != *" $command "* ]] || here=yes
  if [[ -n $flag ]]; then
    [[ $word == "$flag" && ( -n $here || $3 == none ) ]] || return 0
    kind=$3
    shift 4
    values=("$@")
  elif [[ -n $here && -z $word ]]; then
    [[ $last == -* ]] || kind=$3
  elif [[ -n $here ]]; then
    [[ $command != help || $word != --*.?* ]] || word=${word#--}          # a topic
    [[ $word == "$last"* && ( -n $last || $word != -* ) ]] || return 0
    [[ $word != *.?* || $last == *.* ]] || return 0                       # until then the section is offered
    [[ $3 != section || $last != *.* ]] || return 0
    values+=("$word")
    helps+=("$4")
  fi
}
