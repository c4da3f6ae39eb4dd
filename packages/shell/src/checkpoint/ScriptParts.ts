/**
 * The common parts of the scripts of checkpoints: the trailer, a search path without the workspace, and an environment in which
 * git runs nothing that a repository or a person configured. For POSIX shells with git, find, xargs and stat. Pure.
 * Spec: SL-150..SL-153, SL-158 in specs/shell.md.
 */
import { quoted } from "../session/ShellScripts.ts"
import { secretNames } from "./Secrets.ts"

/** What the scripts of one shell work on. */
export interface Place {
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
const entering = ({ workspace }: Place): string => `
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
  (place: Place, store: string, body: string) =>
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
  (place: Place) =>
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

/** Removes a store. */
export const removing =
  (store: string) =>
  (token: string): string => `
${leaving(token)}
rm -rf -- ${quoted(store)}
leave 0 ''
`
