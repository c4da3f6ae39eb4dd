/**
 * The texts that restore a checkpoint: the first stores the present state and prints what differs, the second changes the
 * workspace. In between, `Restoration.ts` decides about folders and modes. Pure. Spec: SL-159..SL-162 in specs/shell.md.
 */
import { quoted } from "../session/ShellScripts.ts"
import { codes } from "./ScriptParts.ts"

/** Sets \`target\` to the commit that the first digits name. */
export const finding = (id: string): string => `
target=
for each in $ids; do
  case $each in
    ${quoted(id)}*) [ -z "$target" ] || leave ${codes.unknown} ''; target=$each ;;
  esac
done
[ -n "$target" ] || leave ${codes.unknown} ''`

/**
 * Prints, each list ended by an empty element: both commits and the tree that the present files form; the differing files,
 * except added ones that the checkpoint's own rules ignore; then for the present and the checkpoint: modes with
 * their paths, folders of files, empty folders and those of them that are ignored.
 */
export const comparing = (number: string, message: string): string => `
end() { printf '\\0'; }
rules() {
  mkdir -p "$work/rules" || return 1
  (
    GIT_INDEX_FILE=$work/rules.index GIT_WORK_TREE=$work/rules
    export GIT_INDEX_FILE GIT_WORK_TREE
    unset GIT_LITERAL_PATHSPECS
    git read-tree "$target:files" && cd "$work/rules" &&
    git ls-files -z -- ':(glob)**/.gitignore' >"$work/rules.names" &&
    git checkout-index -z --stdin <"$work/rules.names" &&
    ignored_among <"$work/added" >"$work/stay"
  )
}
describe_commit() {
  git ls-tree -z --name-only "$1:modes" >"$work/names" || return 1
  for mode in $(tr '\\0' ' ' <"$work/names"); do
    printf '%s\\0' "$mode" && git cat-file blob "$1:modes/$mode" && end || return 1
  done
  end
  git ls-tree -r -d -z --name-only "$1:files" && end &&
  git cat-file blob "$1:folders" && end && git cat-file blob "$1:ignored" && end
}
main() {
  capture "$target" ${quoted(number)} ${quoted(message)} reuse || return
  git diff-tree -r -z --name-only --no-renames --diff-filter=D "$id:files" "$target:files" >"$work/added" &&
  rules &&
  git update-index -z --force-remove --stdin <"$work/stay" &&
  from=$(git write-tree) &&
  mv "$work/index" "$store/index" || return 1
  printf '%s\\0%s\\0%s\\0' "$target" "$id" "$from"
  end
  git diff-tree -r -z --raw --no-abbrev --no-renames "$from" "$target:files" && end &&
  describe_commit "$id" && describe_commit "$target"
}`

/** Carries out a step on a folder or a mode; prints the paths where that failed. */
const step = `
failed=
linked() {
  p=$1
  while :; do
    case $p in */*) p=\${p%/*} ;; *) return 1 ;; esac
    [ ! -L "./$p" ] || return 0
  done
}
while [ $# -ge 3 ]; do
  if linked "$3"; then
    [ "$1" = rmdir ] || { printf '%s is behind a link\\n' "$3" >&2; failed=yes; }
  else
    case $1 in
      rmdir) rmdir -- "./$3" 2>/dev/null ;;
      mkdir) [ -d "./$3" ] && [ ! -L "./$3" ] || mkdir -p -- "./$3" || failed=yes ;;
      chmod) [ -L "./$3" ] || chmod -- "$2" "./$3" || failed=yes ;;
    esac
  fi
  shift 3
done
[ -z "$failed" ]`

/** Changes the files from one tree to the checkpoint's, then reads steps of three words from standard input. */
export const applying = (from: string, target: string): string => `
main() {
  git read-tree -m -u ${from} "${target}:files" || return 1
  mv "$work/index" "$store/index" || return 1
  xargs -0 -n 30 sh -c ${quoted(step)} sh
}`
