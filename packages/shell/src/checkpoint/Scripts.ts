/**
 * The scripts of checkpoints, for POSIX shells with git, find, xargs and stat: what they share, how one stores a
 * workspace, and how one restores it. Pure. Spec: SL-150..SL-162 in specs/shell.md.
 */
import { quoted } from "../session/ShellScripts.ts"

// Names of files and folders that no checkpoint holds, whatever a `.gitignore` says.

/** Patterns as in `.gitignore`, for names at any depth. Git never looks into `.git`; it refuses its other spellings. */
const secretNames: ReadonlyArray<string> = (
  ".[gG][iI][tT] .ssh .gnupg .aws .azure .gcloud .kube .netrc _netrc .cache .env* .git-credentials .pgpass .npmrc .pypirc " +
  ".vault-token id_rsa* id_dsa* id_ecdsa* id_ed25519* *.pem *.key *.p12 *.pfx *.ppk *.jks *.keystore *.kdbx"
).split(" ")

// The common parts of the scripts: the trailer, a safe search path, and an environment in which git runs nothing
// configured.

/** What the scripts of one shell work on. */
export interface CheckpointScope {
  /** The folder of which checkpoints are made. */
  readonly workspace: string
  /** Patterns, as in `.gitignore`, of files that are left alone. */
  readonly ignores: ReadonlyArray<string>
}

/** Exit codes of the scripts. */
export const codes = { noGit: 10, workspace: 11, tooLarge: 12, gone: 13, unknown: 14 } as const

/** Ends the script with a code and a text; the trailer is what `RunScript` waits for. */
const leaving = (token: string): string => `
work=
leave() {
  printf '%s%s\\n%s%s' ${token} "$1" "$2" ${token}
  [ -z "$work" ] || rm -rf -- "$work"
  exit 0
}`

/** Enters the workspace. The folders of the search path that lie in it are left out. */
const entering = ({ workspace }: CheckpointScope): string => `
umask 022
LC_ALL=C
export LC_ALL
cd -P -- ${quoted(workspace)} 2>/dev/null || leave ${codes.workspace} ${quoted(`there is no folder ${workspace}`)}
root=$(pwd -P; echo .)
root=\${root%??}
[ "$root" != / ] || leave ${codes.workspace} 'the workspace cannot be the root folder'
home=$(cd -P -- "\${HOME:-/}" 2>/dev/null && pwd -P)
case \${home:-/}/ in
  //) ;;
  "$root"/*) leave ${codes.workspace} 'the workspace cannot be the home folder, or hold it' ;;
esac
found=
IFS=:
set -f
for folder in $PATH; do
  case $folder/ in
    "$root"/*) ;;
    /*) found=$found\${found:+:}$folder ;;
  esac
done
set +f
unset IFS
PATH=$found
export PATH
command -v git >/dev/null 2>&1 || leave ${codes.noGit} 'git is not installed where the shell runs'
for tool in find xargs stat; do
  command -v $tool >/dev/null 2>&1 || leave ${codes.noGit} "$tool is not installed where the shell runs"
done
for name in $(env | sed -n 's/^\\(GIT_[A-Za-z0-9_]*\\)=.*/\\1/p'); do unset "$name"; done`

/** Points git at the store. */
const guarded = `
HOME=$store
XDG_CONFIG_HOME=$store
GIT_DIR=$store
GIT_WORK_TREE=$root
GIT_CONFIG_NOSYSTEM=1
GIT_CONFIG_SYSTEM=/dev/null
GIT_CONFIG_GLOBAL=/dev/null
GIT_ATTR_NOSYSTEM=1
GIT_LITERAL_PATHSPECS=1
GIT_NO_REPLACE_OBJECTS=1
GIT_TERMINAL_PROMPT=0
GIT_ALLOW_PROTOCOL=none
GIT_NO_LAZY_FETCH=1
GIT_AUTHOR_NAME=daybook
GIT_AUTHOR_EMAIL=daybook
GIT_COMMITTER_NAME=daybook
GIT_COMMITTER_EMAIL=daybook
export HOME XDG_CONFIG_HOME GIT_DIR GIT_WORK_TREE GIT_CONFIG_NOSYSTEM GIT_CONFIG_SYSTEM GIT_CONFIG_GLOBAL GIT_ATTR_NOSYSTEM
export GIT_LITERAL_PATHSPECS GIT_NO_REPLACE_OBJECTS GIT_TERMINAL_PROMPT GIT_ALLOW_PROTOCOL GIT_NO_LAZY_FETCH
export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL`

/** Runs a body on the store. Each script has a copy of the index, so that one that was killed leaves the index whole. */
export const onStore =
  (place: CheckpointScope, store: string, body: string) =>
  (token: string): string => `
${leaving(token)}
${entering(place)}
store=${quoted(store)}
[ -f "$store/HEAD" ] || leave ${codes.gone} 'the checkpoints were removed'
${guarded}
rm -rf -- "$store"/work.*
work=$(mktemp -d "$store/work.XXXXXX") || leave 1 'there is no room for the checkpoint'
GIT_INDEX_FILE=$work/index
export GIT_INDEX_FILE
[ ! -f "$store/index" ] || cp -p "$store/index" "$work/index"
ids=$(git for-each-ref --sort=-refname --format='%(objectname)' refs/checkpoints/ 2>/dev/null)
${body}
{ main; } 2>"$work/errors"
code=$?
leave "$code" "$(tail -c 2000 "$work/errors")"
`

/** No conversion of content, no helper program, no rule about names but git's own `.git`. */
const config = [
  "[core]",
  "repositoryformatversion = 0",
  "bare = false",
  "filemode = true",
  "symlinks = true",
  "ignorecase = false",
  "precomposeUnicode = false",
  "protectHFS = false",
  "protectNTFS = false",
  "autocrlf = false",
  "safecrlf = false",
  "fsmonitor = false",
  "untrackedCache = false",
  "hooksPath = /dev/null",
  "attributesFile = /dev/null",
  "logAllRefUpdates = false",
  "compression = 1",
  "[gc]",
  "auto = 0",
  "[pack]",
  "threads = 1",
  "windowMemory = 64m",
  "[submodule]",
  "recurse = false"
].join("\n")

/** The attributes with the highest precedence switch off what a `.gitattributes` asks for. */
const attributes = "* -text -eol -ident -filter -diff -merge !working-tree-encoding"

/** Days after which a store is removed that a lost shell left behind. */
const staleDays = 30

/** Creates a store outside the workspace and prints its path. */
export const creating =
  (place: CheckpointScope) =>
  (token: string): string => `
${leaving(token)}
${entering(place)}
for base in /var/tmp "\${TMPDIR:-/tmp}" /tmp; do
  base=$(cd -P -- "$base" 2>/dev/null && pwd -P) || continue
  case $base/ in "$root"/*) continue ;; esac
  find "$base" -maxdepth 1 -name 'daybook-checkpoints.*' -user "$(id -u)" -mtime +${staleDays} -exec rm -rf -- {} + 2>/dev/null
  store=$(mktemp -d "$base/daybook-checkpoints.XXXXXX" 2>/dev/null) && break
  store=
done
[ -n "\${store:-}" ] || leave 1 'there is no folder for temporary files outside the workspace'
mkdir -p "$store/info" "$store/objects/info" "$store/objects/pack" "$store/refs/heads" "$store/refs/checkpoints" &&
printf '%s\\n' ${quoted(config)} >"$store/config" &&
printf '%s\\n' ${quoted(attributes)} >"$store/info/attributes" &&
printf '%s\\n' ${[...place.ignores, ...secretNames].map(quoted).join(" ")} >"$store/info/exclude" &&
printf '%s' "$root" >"$store/workspace" &&
printf 'ref: refs/heads/none\\n' >"$store/HEAD" || { rm -rf -- "$store"; leave 1 'the folder of checkpoints could not be written'; }
printf '%s' "$store"
leave 0 ''
`

export const removing =
  (store: string) =>
  (token: string): string => `
${leaving(token)}
rm -rf -- ${quoted(store)}
leave 0 ''
`

// The script that stores a workspace as a commit of four entries: `files`; `modes`, the paths for each unusual mode;
// `folders`, the empty folders; and `ignored`, the empty folders that a rule ignores. NUL separates the names in lists.

export interface Limits {
  readonly fileBytes: number
  /** Bytes of new and changed files. */
  readonly bytes: number
  /** Checkpoints that are kept. */
  readonly kept: number
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
export const capturing = ({ ignores }: CheckpointScope, limits: Limits): string => {
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

// The scripts that restore a checkpoint: the first prints what differs, the second changes the workspace.

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
