
# Bash cuts words at '=', so that --key=value arrives as three.
_trainer() {
  local kind word last before=
  local -a words=() values helps
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    [[ $word == = ]] || words+=("$word")
  done
  [[ ${COMP_WORDS[COMP_CWORD]} != = ]] || words+=("")
  last=${words[${#words[@]} - 1]}
  COMPREPLY=()
  _trainer_ask "${words[@]}"
  case $kind in
    file) mapfile -t COMPREPLY < <(compgen -f -- "$last") ;;
    directory) mapfile -t COMPREPLY < <(compgen -d -- "$last") ;;
    config) mapfile -t COMPREPLY < <(compgen -f -X '!*.toml' -- "$last"; compgen -d -- "$last") ;;
    list) [[ $last != *,* ]] || before=${last%,*}, ;;
    words) ;;
    *) return 0 ;;
  esac
  if [[ $kind != words && $kind != list ]]; then
    compopt -o filenames 2>/dev/null
    return 0
  fi
  for word in "${values[@]}"; do
    [[ $before$word == "$last"* ]] || continue
    printf -v word %q "$word"
    COMPREPLY+=("$before$word")
  done
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *. ]]; then compopt -o nospace 2>/dev/null; fi
  return 0
}

complete -F _trainer trainer
