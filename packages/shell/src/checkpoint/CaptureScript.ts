/**
 * The text that stores the state of a workspace in its shadow repository. A checkpoint is a commit of four entries: `files`, the
 * captured files; `modes`, a list of paths for each mode that is neither 644 nor 755; `folders`, the empty folders; and
 * `ignored`, those of them that a rule ignores. Lists are separated with NUL, so that no name breaks them. Pure.
 * Spec: SL-154..SL-160 in specs/shell.md.
 */
import { quoted } from "../session/ShellScripts.ts"
import { secretNames } from "./Secrets.ts"
import { codes, type Place } from "./ScriptParts.ts"

export interface Limits {
  /** Bytes of a file; larger ones are left alone. */
  readonly fileBytes: number
  /** Bytes of new and changed files. */
  readonly bytes: number
  /** Checkpoints that are kept. */
  readonly kept: number
  /** KiB of a store above which its older half is dropped. */
  readonly storeKiB: number
}

/** Prints those of its arguments that a checkpoint can hold: files and links, not behind a link or in another repository. */
const choose = `
last=/
for f; do
  case $f in
    */) continue ;;
    */*) d=\${f%/*} ;;
    *) d= ;;
  esac
  if [ "$d" != "$last" ]; then
    last=$d foreign= p=$d
    while [ -n "$p" ]; do
      if [ -L "./$p" ] || [ -e "./$p/.git" ]; then foreign=yes; fi
      case $p in */*) p=\${p%/*} ;; *) p= ;; esac
    done
  fi
  [ -z "$foreign" ] || continue
  if [ -L "./$f" ] || { [ -f "./$f" ] && [ -r "./$f" ]; }; then printf '%s\\0' "./$f"; fi
done`

/** Prints the folders among its arguments, which end with a slash, outside of other repositories. */
const ownFolders = `
for f; do
  case $f in */) [ -e "./$f.git" ] || printf '%s\\0' "./\${f%/}" ;; esac
done`

/** Prints its arguments without the leading \`./\`, if no folder above them is another repository. */
const outsideRepositories = `
for f; do
  f=\${f#./} p=$f foreign=
  while [ -n "$p" ]; do
    [ ! -e "./$p/.git" ] || foreign=yes
    case $p in */*) p=\${p%/*} ;; *) p= ;; esac
  done
  [ -n "$foreign" ] || printf '%s\\0' "$f"
done`

/** Prints its arguments and the folders above each. */
const withParents = `
for f; do
  while :; do
    printf '%s\\0' "$f"
    case $f in */*) f=\${f%/*} ;; *) break ;; esac
  done
done`

/** Adds its arguments, except links, to the list of their mode. */
const byMode = `
[ $# -gt 0 ] || exit 0
all=$(stat -c %a -- "$@") || exit 255
for m in $all; do
  case $m in
    644 | 755) ;;
    *) [ -L "./$1" ] || printf '%s\\0' "$1" >>"$work/modes/$m" ;;
  esac
  shift
done`

const each = (text: string): string => `xargs -0 sh -c ${quoted(text)} sh`

/**
 * Defines \`capture\`. Its first argument is a commit whose paths are captured too, though they may be ignored now, or empty; the
 * second is the name of the new reference, the third its message; a fourth returns the newest checkpoint if it is the same.
 * It sets \`id\`.
 */
export const capturing = ({ ignores }: Place, limits: Limits): string => {
  const rules = [...ignores, ...secretNames].map((pattern) => `-x ${quoted(pattern)}`).join(" ")
  const notSecret = [".git", ...secretNames].map((name) => `-name ${quoted(name)}`).join(" -o ")
  return `
own=
[ ! -f "$root/.git/info/exclude" ] || own=$root/.git/info/exclude
listed() { git -c core.excludesFile="\${own:-/dev/null}" ls-files -z ${rules} --exclude-standard "$@"; }
# Prints those of the paths that a rule ignores, after \`./\`, so that no name is read as a pattern.
ignored_among() {
  (
    unset GIT_LITERAL_PATHSPECS
    ${each(`for f; do printf '%s\\0' "./$f"; done`)} |
      git -c core.excludesFile="\${own:-/dev/null}" check-ignore -z --stdin --no-index || [ $? -eq 1 ]
  )
}
sum() {
  t=0
  while read -r n; do t=$((t + n)); done
  [ "$t" -le ${limits.bytes} ]
}
packed() {
  case $(git version) in
    *' 2.3'[7-9]* | *' 2.'[4-9][0-9]* | *' 2.'[1-9][0-9][0-9]* | *' '[3-9].*)
      [ "$(tr -cd '\\0' <"$work/add" | wc -c)" -le 100 ] || printf 1 ;;
  esac
}
stage() {
  listed -c -i >"$work/hidden" &&
  git update-index -z --force-remove --stdin <"$work/hidden" &&
  listed -o -m -d >"$work/candidates" || return 1
  if [ -n "$1" ]; then
    git diff-index --cached -z --name-only --no-renames --diff-filter=D "$1:files" >>"$work/candidates" || return 1
  fi
  git update-index -z --force-remove --stdin <"$work/candidates" &&
  ${each(choose)} <"$work/candidates" >"$work/readable" &&
  ${each(`[ $# -eq 0 ] || find "$@" -prune '(' -type l -o -type f ! -size +${limits.fileBytes}c ')' -print0`)} \\
    <"$work/readable" >"$work/add" || return 1
  ${each('[ $# -eq 0 ] || stat -c %s -- "$@"')} <"$work/add" | sum || return ${codes.tooLarge}
  git \${threshold:+-c core.bigFileThreshold=1} update-index -z --add --remove --replace --stdin <"$work/add"
}
describe() {
  mkdir "$work/modes" &&
  listed -o --directory >"$work/others" &&
  ${each(ownFolders)} <"$work/others" >"$work/own" &&
  { ${each(`[ $# -eq 0 ] || find "$@" '(' ${notSecret} ')' -prune -o -type d -empty -print0`)} \\
    <"$work/own" 2>/dev/null >"$work/empty" || :; } &&
  ${each(outsideRepositories)} <"$work/empty" >"$work/folders" &&
  ignored_among <"$work/folders" >"$work/ignored" &&
  git ls-files -z >"$work/all" &&
  git ls-tree -r -d -z --name-only "$files" >>"$work/all" &&
  ${each(withParents)} <"$work/folders" >>"$work/all" &&
  work=$work ${each(byMode)} <"$work/all" || return 1
  for list in "$work"/modes/*; do
    [ ! -f "$list" ] || printf '100644 blob %s\\t%s\\n' "$(git hash-object -w --no-filters "$list")" "\${list##*/}"
  done | git mktree >"$work/tree" &&
  tree=$(printf '040000 tree %s\\tfiles\\n040000 tree %s\\tmodes\\n100644 blob %s\\tfolders\\n100644 blob %s\\tignored\\n' \\
    "$files" "$(cat "$work/tree")" "$(git hash-object -w --no-filters "$work/folders")" \\
    "$(git hash-object -w --no-filters "$work/ignored")" | git mktree)
}
publish() {
  newest=\${ids%%[!0-9a-f]*}
  if [ -n "$3" ] && [ -n "$newest" ] && [ "$(git rev-parse "$newest^{tree}")" = "$tree" ]; then
    id=$newest
  else
    id=$(printf '%s' "$2" | git commit-tree "$tree") && git update-ref "refs/checkpoints/$1" "$id" || return 1
  fi
  [ ! -f "$work/index" ] || cp -p "$work/index" "$work/index.new" && mv "$work/index.new" "$store/index"
}
capture() {
  threshold=
  stage "$1" || return
  files=$(git write-tree) && describe && publish "$2" "$3" "$4"
}
# Drops the oldest, beyond a number.
drop() {
  gone=
  for ref in $(git for-each-ref --sort=-refname --format='%(refname)' refs/checkpoints/ | tail -n "+$(($1 + 1))"); do
    git update-ref -d "$ref" && gone=yes
  done
}
# After many drops, and for a store that is too large, the objects go too.
prune() {
  drop ${limits.kept}
  size=$(du -sk "$store" | cut -f 1)
  if [ "\${size:-0}" -gt ${limits.storeKiB} ]; then
    drop $(($(git for-each-ref refs/checkpoints/ | wc -l) / 2 + 1))
    git gc -q --prune=now
  elif [ -n "$gone" ] && [ "\${1%0}" != "$1" ]; then
    git gc -q --prune=now
  fi
}`
}
