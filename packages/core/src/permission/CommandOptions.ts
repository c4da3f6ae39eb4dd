/**
 * Knows which options and arguments of commands write files or run other commands. A command that is not listed is
 * assumed to have the usual ones. Pure. Spec: BR-6, BR-7.
 */
import type { Word } from "./CommandLine.ts"

interface KnownOptions {
  /** None of its options runs a command, or writes anything that the command does not write anyway. */
  readonly harmless?: true
  /** Letters of one-letter options. */
  readonly letters?: string
  readonly long?: ReadonlyArray<string>
  /** Arguments at any position. */
  readonly words?: RegExp
  readonly subcommands?: RegExp
}

/** Subcommands of `git` that run only what the repository's configuration names. Others, aliases included, ask. */
const gitSubcommands =
  "add am annotate apply archive blame branch bundle cat-file check-attr check-ignore check-mailmap check-ref-format " +
  "checkout cherry cherry-pick clean clone commit commit-tree count-objects describe diff diff-files diff-index diff-tree " +
  "fetch for-each-ref format-patch fsck gc grep hash-object help init log ls-files ls-remote ls-tree merge merge-base " +
  "merge-file merge-tree mktree mv name-rev notes pack-refs patch-id prune pull push range-diff read-tree rebase reflog " +
  "remote repack replace reset restore rev-list rev-parse revert rm shortlog show show-branch show-ref sparse-checkout " +
  "stash status stripspace switch symbolic-ref tag update-index update-ref verify-commit verify-tag version whatchanged " +
  "worktree write-tree"
const gitPlain = new Set(gitSubcommands.split(" "))

/** Long options that write or run, in any command. */
const usual = (
  "browser command config delete editor eval exec execute ext-diff fix import in-place inplace loader preload " +
  "open-files-in-pager out out-file outfile output pager plugin pre receive-pack require rsh rsync-path toolexec " +
  "upload-pack write"
).split(" ")

const harmless =
  "[ basename cat cd chmod chown cksum cmp column comm cp cut df diff dirname du echo egrep expand false fgrep fold free " +
  "grep groups head hexdump id jq join ln ls md5sum mkdir mv nproc od paste pgrep popd printenv printf ps pushd pwd " +
  "readlink realpath rev rm rmdir seq set sha1sum sha256sum sha512sum sleep stat strings tac tail test touch tr true type " +
  "unexpand uptime wc which whoami"

const interpreter = (letters: string, ...long: ReadonlyArray<string>): KnownOptions => ({ letters, long })
const shell = interpreter("co", "init-file", "rcfile")
const javascript = interpreter("epr", "eval", "print", "import", "experimental-loader", "env-file", "test-reporter")
const compiler: KnownOptions = { letters: "oB", long: ["specs", "wrapper", "fplugin", "load"] }
const pager: KnownOptions = {
  letters: "oOkKP",
  words: /^\+/,
  long: ["cmd", "lesskey-content", "lesskey-file", "lesskey-src", "log-file", "LOG-FILE"]
}
const editor: KnownOptions = { letters: "cSsuWw", words: /^\+/, long: ["cmd", "headless"] }

/** Programs that run their input if they are given no file. */
const programs = new Set("bun deno lua node perl php python python2 python3 ruby".split(" "))

const known: Readonly<Record<string, KnownOptions>> = {
  ...Object.fromEntries(harmless.split(" ").map((name) => [name, { harmless: true as const }])),
  ...Object.fromEntries("ash bash csh dash fish ksh mksh sh tcsh zsh".split(" ").map((name) => [name, shell])),
  bun: javascript,
  cc: compiler,
  clang: compiler,
  curl: {
    letters: "oOKTJDc",
    // A text that begins with `@` is a file's name, also inside a form.
    words: /^@|^-\w*[dF]@|^--[\w-]+=@|=[@<]|%output/,
    long: (
      "remote-name upload-file dump-header cookie-jar trace stderr libcurl engine etag-save hsts alt-svc " +
      "unix-socket abstract-unix-socket ssl-sessions"
    ).split(" ")
  },
  date: { letters: "sf", long: ["set", "file"] },
  deno: { subcommands: /^(?:eval|run|repl)$/ },
  docker: { subcommands: /^(?:exec|run|build|buildx|compose|container|cp)$/ },
  fd: { letters: "xX", long: ["exec-batch"] },
  fdfind: { letters: "xX", long: ["exec-batch"] },
  find: { words: /^-(?:exec|execdir|ok|okdir|delete|fprint0?|fprintf|fls)$/ },
  "g++": compiler,
  gcc: compiler,
  file: { letters: "C", long: ["compile"] },
  fzf: { long: ["bind", "preview", "become", "listen"] },
  gdb: { letters: "xe" },
  git: {
    letters: "oO",
    long: (
      "exec-path config-env git-dir work-tree template extcmd separate-git-dir build-fake-ancestor index-output web " +
      "strategy"
    ).split(" "),
    words: /(?:^|=)(?:ext|fd)::/
  },
  go: { subcommands: /^(?:run|generate|tool|env)$/, long: ["vettool", "ldflags", "gccgoflags", "modfile", "overlay"] },
  less: pager,
  lua: interpreter("el"),
  make: { letters: "fCIEe", words: /=/, long: ["file", "makefile", "directory", "eval", "environment-overrides"] },
  man: { letters: "PHCl", long: ["html", "local-file"] },
  node: javascript,
  npm: {
    letters: "Cco",
    long: ["script-shell", "shell", "call", "prefix", "userconfig", "globalconfig", "node-options"],
    subcommands: /^(?:exec|x|explore)$/
  },
  openssl: { long: ["engine", "provider", "provider-path", "writerand", "keyout", "CAserial"] },
  osascript: interpreter("e"),
  perl: interpreter("eEiMmIxdsp"),
  php: interpreter("raBREF"),
  pip: { letters: "rtec" },
  pnpm: { letters: "Cco", subcommands: /^(?:exec|dlx)$/, long: ["script-shell", "dir"] },
  pwsh: { letters: "cCfFeE" },
  python: interpreter("cm"),
  python2: interpreter("cm"),
  python3: interpreter("cm"),
  rg: { long: ["hostname-bin", "search-zip"], letters: "z" },
  rsync: { letters: "eTfM", long: ["remove-source-files", "backup-dir", "log-file", "remote-option"] },
  ruby: interpreter("erIipxC"),
  scp: { letters: "oSFJ" },
  sftp: { letters: "oSFbD" },
  sort: { letters: "oT", long: ["compress-program", "temporary-directory"] },
  ssh: { letters: "oFEIJ" },
  tar: {
    letters: "IFPf",
    words: /^[A-Za-z]*[IFPf][A-Za-z]*$/,
    long: "checkpoint-action file info-script new-volume-script rsh-command to-command use-compress-program".split(" ")
  },
  tree: { letters: "o" },
  ex: editor,
  nvim: editor,
  vi: editor,
  view: editor,
  vim: editor,
  wget: {
    letters: "OPieoaK",
    long: "use-askpass input-file append-output post-file body-file save-cookies warc-file rejected-log".split(" ")
  },
  yq: { letters: "is", long: ["split-exp"] },
  yarn: { subcommands: /^(?:exec|dlx|node)$/, long: ["cwd"] },
  zip: { letters: "TO", long: ["unzip-command"] }
}

const nothing: KnownOptions = {}

const knownOptions = (name: string): KnownOptions => (Object.hasOwn(known, name) ? (known[name] ?? nothing) : nothing)

export const isHarmless = (name: string): boolean => knownOptions(name).harmless === true

const isAwk = (name: string): boolean => /^[gmn]?awk$/.test(name)

const argumentsOf = (name: string): boolean => {
  const { subcommands, words } = knownOptions(name)
  return name === "git" || subcommands !== undefined || words !== undefined
}

/** Whether a word that is known only at run time may make the command run or write something. */
export const takesWords = (name: string, word: Word): boolean =>
  name === "sed" || isAwk(name) || (argumentsOf(name) && !/^[^*]*\//.test(word.pattern))

/** Programs accept an abbreviated long option. */
const isLong = (option: string, name: string): boolean =>
  option.length > 0 && (name.startsWith(option) || option.startsWith(`${name}-`))

/** A `sed` script that only prints, deletes or substitutes. */
const plainSed =
  /^(?:(?:\d+|\$)(?:,(?:\d+|\$))?)?[pdq=]$|^s([/|#,:])(?:(?!\1)[^\n\\]|\\[^\n])*\1(?:(?!\1)[^\n\\]|\\[^\n])*\1[gpiI\d]*$/

const ofSed = (words: ReadonlyArray<Word>, index: number): boolean => {
  const text = words[index]?.text ?? ""
  const before = words[index - 1]?.text ?? ""
  if (/^-[nErsuz]*e$/.test(before)) return !plainSed.test(text)
  if (text.startsWith("-") && text.length > 1)
    return !/^-(?:[nErsuz]*e|[nErsuz]+|-quiet|-silent|-regexp-extended)$/.test(text)
  const scripts = words.some((word) => /^-[nErsuz]*e$/.test(word.text))
  const isScript = !scripts && words.findIndex((word) => !word.text.startsWith("-")) === index
  return isScript && !plainSed.test(text)
}

const ofAwk = (words: ReadonlyArray<Word>, index: number): boolean => {
  const text = words[index]?.text ?? ""
  if (/^-[Fv]/.test(text)) return false
  if (text.startsWith("-")) return true
  return /system|getline|extension|[|>@<]/.test(text)
}

/** Options of `git` itself whose value is the next word. */
const gitValues =
  /^(?:-[Cc]|--(?:git-dir|work-tree|namespace|exec-path|config-env|super-prefix|attr-source|list-cmds))$/

/** The index of the subcommand of `git`. */
const gitSubcommandAt = (words: ReadonlyArray<Word>): number =>
  words.findIndex(({ text }, at) => !text.startsWith("-") && !gitValues.test(words[at - 1]?.text ?? ""))

/** Whether the word is an option of `git` or of its subcommand, or a subcommand, that may run a command. */
const ofGit = (words: ReadonlyArray<Word>, index: number): boolean => {
  const text = words[index]?.text ?? ""
  const at = gitSubcommandAt(words)
  if (at < 0 || index < at) return text.startsWith("-c")
  if (index === at) return !gitPlain.has(text)
  const strategy = /^-\w*s/
  const letters = { clone: /^-\w*[uc]/, rebase: /^-\w*[xs]/, merge: strategy, pull: strategy, help: /^-\w*w/ }
  const subcommand = words[at]?.text ?? ""
  return Object.entries(letters).some(([name, pattern]) => name === subcommand && pattern.test(text))
}

/** The dangerous option in a word with one dash, up to its letter: `-no` of `-nofile`. */
const ofCluster = (cluster: string, letters: string | undefined): string | undefined => {
  const at = [...cluster].findIndex((letter) => (letters ?? "oO").includes(letter))
  // In an unknown command, a word with one dash may be one long option.
  return at < 0 || (letters === undefined && at > 0 && cluster.length > 3) ? undefined : `-${cluster.slice(0, at + 1)}`
}

/** Whether only options, each with at most one value, precede the word. */
const isSubcommand = (words: ReadonlyArray<Word>, index: number): boolean =>
  words
    .slice(0, index)
    .every(({ text }, at) => text.startsWith("-") || (at > 0 && words[at - 1]?.text.startsWith("-") === true))

/** Whether the word is the second file of `uniq`, which `uniq` writes. */
const isOutput = (words: ReadonlyArray<Word>, index: number): boolean => {
  const isFile = ({ text }: Word, at: number) =>
    (!text.startsWith("-") || text === "-") && !/^(?:-\w*[fsw]|--[\w-]+)$/.test(words[at - 1]?.text ?? "")
  return words.slice(0, index + 1).filter(isFile).length > 1
}

/** Whether an interpreter has no file argument and so runs its input. */
export const readsProgram = (name: string, words: ReadonlyArray<Word>): boolean => {
  if (!programs.has(name) || words.some(({ text }) => /^(?:-[vVh]+|--version|--help)$/.test(text))) return false
  const first = words.find(({ text }) => !text.startsWith("-") || text === "-")?.text
  return first === undefined || /^(?:-$|\/dev\/|\/proc\/)/.test(first)
}

/** The option or word with which this argument makes the command write a file or run another command. */
export const writesOrRuns = (name: string, words: ReadonlyArray<Word>, index: number): string | undefined => {
  const text = words[index]?.text ?? ""
  const { letters, long = [], subcommands, words: special } = knownOptions(name)
  if (special?.test(text) === true) return text
  if (subcommands?.test(text) === true && isSubcommand(words, index)) return text
  if (name === "sed") return ofSed(words, index) ? text : undefined
  if (isAwk(name)) return ofAwk(words, index) ? text : undefined
  if (name === "git" && ofGit(words, index)) return text.startsWith("-") ? text.slice(0, 2) : text
  if (name === "uniq" && isOutput(words, index)) return text
  if (!text.startsWith("-") || text === "-" || text === "--") return undefined
  const [option = ""] = text.split("=", 1)
  if (text.startsWith("--")) {
    return [...usual, ...long].some((each) => isLong(option.slice(2), each)) ? option : undefined
  }
  if ([...usual, ...long].includes(option.slice(1))) return option
  return ofCluster(/^[A-Za-z0-9]*/.exec(option.slice(1))?.[0] ?? "", letters)
}
