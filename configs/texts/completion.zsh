
_trainer() {
  local kind word i
  local -a typed values helps shown space
  for word in "${(@Q)words[2,CURRENT]}"; do
    if [[ $word == --*=* ]]; then typed+=("${word%%=*}" "${word#*=}"); else typed+=("$word"); fi
  done
  [[ $PREFIX != --*=* ]] || compset -P 1 '*='
  _trainer_ask "${typed[@]}"
  case $kind in
    file) _files ;;
    directory) _files -/ ;;
    config) _files -g '*.toml' ;;
    words | list)
      [[ $kind != list ]] || compset -P '*,'
      for ((i = 1; i <= $#values; ++i)); do
        shown+=("${(r:30:)values[i]} ${helps[i]}")
        [[ $values[i] != *. ]] || space=(-S '')
      done
      compadd "${space[@]}" -l -d shown -a values
      ;;
  esac
}

_trainer "$@"
