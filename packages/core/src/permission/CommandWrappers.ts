/**
 * Knows what commands run that run others: the options of shells, and of programs such as `sudo`, `timeout`, `xargs` and
 * `ssh`. Pure. Spec: BR-9, BR-12, SL-50.
 */
import type { SimpleCommand, Word } from "./CommandLine.ts"

export const baseName = (name: string): string => name.slice(name.lastIndexOf("/") + 1)

export const nameOf = ({ words }: Pick<SimpleCommand, "words">): string => baseName(words[0]?.text ?? "")

export interface Inner {
  readonly commands: ReadonlyArray<ReadonlyArray<Word>>
  /** Texts that a shell executes. Expansions of the line's own shell are in them as written. */
  readonly scripts: ReadonlyArray<string>
  /** It executes its standard input. */
  readonly reads: boolean
  /** It executes text that the line does not show: its input, or what an expansion gives. */
  readonly unseen: boolean
  /** The option with which a shell also runs the files of its start. */
  readonly startup: string | undefined
  /** More may run than these: it has options, or something is known only when it runs. */
  readonly more: boolean
  /** Its options are not known: each word may be a command or a script. */
  readonly guessed: boolean
}

/** The options of a program that runs a command, and where the command begins. */
interface Form {
  /** Letters of options with a value. */
  readonly values?: string
  readonly longs?: string
  /** Letters of options whose value is a script. */
  readonly script?: string
  /** Long options whose value is a script. */
  readonly scripts?: string
  /** Words before the command that are not options. */
  readonly skip?: number
  /** Assignments may precede the command. */
  readonly assigns?: true
  /** Options may follow other words. Such words are not a command. */
  readonly permutes?: true
  /** The words of the command are a script, joined with spaces. */
  readonly joins?: true
  /** Without a command it runs a shell, which executes its input. */
  readonly shell?: true
  /** Without options, it runs its arguments and nothing else. */
  readonly plain?: true
}

const plain: Form = { plain: true }
const login: Form = {
  values: "gGswT",
  longs: "group supp-group shell whitelist-environment",
  script: "c",
  scripts: "command session-command",
  permutes: true,
  shell: true
}

const forms: Readonly<Record<string, Form>> = {
  at: { values: "fqt", permutes: true, shell: true },
  batch: { values: "fqt", permutes: true, shell: true },
  builtin: plain,
  bunx: { ...plain, values: "p", longs: "package" },
  busybox: plain,
  chronic: {},
  chroot: { skip: 1, longs: "userspec groups", shell: true },
  chrt: { skip: 1, values: "DPT", longs: "sched-runtime sched-period sched-deadline pid" },
  command: plain,
  doas: { ...plain, values: "Cu", shell: true },
  env: { ...plain, values: "uC", longs: "unset chdir", script: "S", scripts: "split-string", assigns: true },
  eval: { ...plain, joins: true },
  exec: { ...plain, values: "a" },
  fakeroot: { values: "bils", longs: "lib faked" },
  faketime: { skip: 1, values: "f" },
  fish: { values: "Ddfo", script: "cC", scripts: "command init-command", shell: true },
  flock: { skip: 1, values: "Ew", longs: "timeout wait conflict-exit-code", script: "c", scripts: "command" },
  ionice: { values: "cnPpu", longs: "class classdata pid pgid uid" },
  ltrace: { values: "AaDeFlnopSsuwXx" },
  nice: { ...plain, values: "n", longs: "adjustment" },
  nohup: plain,
  npx: { ...plain, values: "pw", longs: "package workspace", script: "c", scripts: "call" },
  nsenter: { values: "GSt", longs: "target setuid setgid", shell: true },
  pkexec: { ...plain, longs: "user" },
  pnpx: { ...plain, longs: "package" },
  prlimit: { values: "op", longs: "pid output" },
  runuser: login,
  script: { ...login, values: "BEIOTmo", longs: "echo log-in log-io log-out log-timing output-limit" },
  setpriv: {
    longs:
      "ambient-caps apparmor-profile bounding-set egid euid groups inh-caps landlock-access landlock-rule pdeathsig " +
      "ptracer regid reuid rgid ruid securebits selinux-label"
  },
  setsid: plain,
  sg: { skip: 1, script: "c", joins: true, shell: true },
  ssh: { skip: 1, values: "BDEFIJLOPQRSWbceilmopw", joins: true, shell: true },
  sshpass: { values: "Pdfp" },
  stdbuf: { values: "eio", longs: "input output error" },
  strace: { values: "EIOPSUXabeopsu" },
  su: login,
  sudo: {
    ...plain,
    values: "CDRTUacghprtu",
    longs: "auth-type chdir chroot class close-from command-timeout group host other-user prompt role type user",
    assigns: true,
    shell: true
  },
  "systemd-run": {
    values: "CEHMpu",
    longs:
      "description gid host machine nice on-active on-boot on-calendar on-startup on-unit-active path-property property " +
      "service-type setenv slice socket-property timer-property uid unit working-directory"
  },
  taskset: { skip: 1 },
  time: { ...plain, values: "fo", longs: "format output" },
  timeout: { ...plain, skip: 1, values: "ks", longs: "kill-after signal" },
  toybox: plain,
  unbuffer: {},
  unshare: {
    values: "GRSlw",
    longs: "load-interp map-group map-groups map-user map-users propagation root setgid setgroups setuid wd",
    shell: true
  },
  uvx: { ...plain, values: "p", longs: "from with python index" },
  watch: { values: "nqs", longs: "interval equexit shotsdir", joins: true },
  xargs: {
    ...plain,
    values: "EILPadns",
    longs: "arg-file delimiter max-args max-chars max-lines max-procs process-slot-var"
  },
  "xvfb-run": { values: "efnps", longs: "auth-file error-file server-num server-args xauth-protocol" }
}

const shells = new Set("ash bash csh dash fish ksh mksh rbash rksh rzsh sh tcsh yash zsh".split(" "))

/** Commands that run a command in their arguments, or a script that they are given. */
const wrappers = new Set([
  ...Object.keys(forms),
  ...shells,
  ...". alias bwrap coproc entr find firejail parallel proot rush setarch source trap".split(" ")
])

/** Commands that execute their input. */
const readers = new Set([...shells, "xargs", "parallel", "source", ".", "busybox", "toybox"])

export const isWrapper = (command: SimpleCommand): boolean => wrappers.has(nameOf(command))

/** Whether a word names a shell, also with its folder. */
export const isShellName = (text: string): boolean => shells.has(baseName(text))

export const isShell = (command: SimpleCommand): boolean => shells.has(nameOf(command))

export const isReader = (command: SimpleCommand): boolean => readers.has(nameOf(command))

/** Variables that change nothing but a command's messages. */
export const harmlessVariable =
  /^(?:LANG|LC_[A-Z]+|TZ|CI|NO_COLOR|FORCE_COLOR|CLICOLOR|COLUMNS|LINES|DEBUG|VERBOSE|NODE_ENV|LOG_LEVEL|RUST_LOG|RUST_BACKTRACE)$/

/** A word that another command appends at run time; it may be an option. */
const added: Word = { text: "...", unquoted: "...", fixed: false, pattern: "*", splits: true, option: true }

const inner = (parts: Partial<Inner>): Inner => ({
  commands: [],
  scripts: [],
  reads: false,
  unseen: false,
  startup: undefined,
  more: false,
  guessed: false,
  ...parts
})

const unknown = inner({ more: true, guessed: true })

const isFixed = ({ fixed }: Word): boolean => fixed

export const joined = (words: ReadonlyArray<Word>): string => words.map(({ unquoted }) => unquoted).join(" ")

const names = (list = ""): ReadonlyArray<string> => (list === "" ? [] : list.split(" "))

/** A long option may be abbreviated. */
const isOneOf = (list: string | undefined, option: string): boolean =>
  option.length > 1 && names(list).some((name) => name.startsWith(option))

interface Scanned {
  readonly scripts: ReadonlyArray<Word>
  readonly rest: ReadonlyArray<Word>
  /** Words before the rest, except those that the form skips. */
  readonly options: ReadonlyArray<Word>
  readonly certain: boolean
}

/** The value of an option that begins in the middle of a word. */
const partOf = (word: Word, from: number): Word => ({ ...word, unquoted: word.unquoted.slice(from), splits: false })

/** Reads options up to the command. */
const scanned = (form: Form, words: ReadonlyArray<Word>): Scanned => {
  const scripts: Array<Word> = []
  const options: Array<Word> = []
  let certain = true
  let skip = form.skip ?? 0
  let at = 0
  for (; at < words.length; at++) {
    const word = words[at] ?? added
    const { unquoted: text } = word
    if (!word.fixed && (word.splits || word.option)) certain = false
    if (text === "--") {
      if (form.permutes === true && words[at + 1]?.unquoted.startsWith("-") === true) continue
      at += 1 + (form.permutes === true ? 0 : skip)
      break
    }
    if (!text.startsWith("-")) {
      if (form.permutes === true) continue
      if (form.assigns === true && /^\w+=/.test(text)) options.push(word)
      else if (skip > 0) skip -= 1
      else break
      continue
    }
    options.push(word)
    const next = words[at + 1]
    if (text.startsWith("--")) {
      const option = /^--([^=]*)/.exec(text)?.[1] ?? ""
      const value = text.includes("=") ? partOf(word, text.indexOf("=") + 1) : next
      const isScript = isOneOf(form.scripts, option)
      if (isScript && value !== undefined) scripts.push(value)
      if ((isScript || isOneOf(form.longs, option)) && value === next) at += 1
      continue
    }
    const valued = `${form.values ?? ""}${form.script ?? ""}`
    const from = [...text].findIndex((letter, index) => index > 0 && valued.includes(letter))
    if (from < 0) continue
    const value = from + 1 < text.length ? partOf(word, from + 1) : next
    if (value === next) at += 1
    if (form.script?.includes(text[from] ?? "") === true && value !== undefined) scripts.push(value)
  }
  return { scripts, options, certain, rest: words.slice(at) }
}

const withForm = (form: Form, words: ReadonlyArray<Word>): Inner => {
  const { certain, options, rest, scripts } = scanned(form, words)
  const isScript = form.joins === true && rest.length > 0
  const texts = isScript ? [...scripts, ...rest] : scripts
  const commands = isScript || rest.length === 0 || scripts.length > 0 ? [] : [rest]
  const reads = form.shell === true && commands.length === 0 && texts.length === 0
  return inner({
    commands,
    scripts: [...scripts.map(({ unquoted }) => unquoted), ...(isScript ? [joined(rest)] : [])],
    reads,
    unseen: reads || !texts.every(isFixed),
    more:
      form.plain !== true ||
      options.length > 0 ||
      !certain ||
      scripts.length > 0 ||
      !texts.every(isFixed) ||
      commands.length + texts.length === 0,
    guessed: !certain
  })
}

/** A script in a file, which is judged as a command by its path. What a descriptor has is not visible. */
const ofFile = (words: ReadonlyArray<Word>): Inner => {
  const [first] = words
  const hidden = first === undefined || first.splits || /^(?:-|\/dev\/|\/proc\/)/.test(first.unquoted)
  return hidden ? inner({ reads: true, unseen: true, more: true }) : inner({ commands: [words] })
}

/** Long options of shells whose value is the next word. */
const shellLongs = "emulate init-file rcfile"

/** What a shell runs: the script after `-c`, a file, or its input. */
const ofShell = (name: string, words: ReadonlyArray<Word>): Inner => {
  let [hasScript, hasInput, certain] = [false, false, true]
  let startup: string | undefined
  let at = 0
  for (; at < words.length; at++) {
    const { fixed, text, unquoted } = words[at] ?? added
    if (!/^[-+]/.test(unquoted)) {
      // Its value may be options, and the script after it may be theirs.
      if (!fixed && words[at]?.splits === true) return { ...unknown, unseen: true }
      break
    }
    if (!fixed) certain = false
    if (unquoted === "-" || unquoted === "--") {
      at += 1
      break
    }
    if (unquoted.startsWith("--")) {
      const option = unquoted.slice(2)
      if (names(shellLongs).includes(option)) at += 1
      if (/^(?:debugger|init-file|interactive|login|rcfile)$/.test(option)) startup = text
      continue
    }
    // zsh also takes the name of an option in the same word.
    const letters = name.endsWith("zsh") ? unquoted.replace(/o.+$/, "") : unquoted
    if (unquoted.startsWith("-")) {
      hasScript ||= letters.includes("c")
      hasInput ||= letters.includes("s")
      if (/[il]/.test(letters)) startup = text
    }
    at += [...letters].filter((letter) => letter === "o" || letter === "O").length
  }
  const rest = words.slice(at)
  const [first] = rest
  if (hasScript) {
    const isVisible = first?.fixed !== false
    return inner({
      scripts: first === undefined ? [] : [first.unquoted],
      unseen: !isVisible,
      startup,
      more: !isVisible || !certain || first === undefined,
      guessed: !certain
    })
  }
  const file = hasInput ? ofFile([]) : ofFile(rest)
  return { ...file, startup, more: file.more || !certain }
}

/** The commands of `find`: from `-exec` and similar options to `;` or `+`. */
const ofFind = (words: ReadonlyArray<Word>): Inner => {
  const commands: Array<ReadonlyArray<Word>> = []
  for (let from = 0; from < words.length; from++) {
    if (!/^-(?:exec|execdir|ok|okdir)$/.test(words[from]?.text ?? "")) continue
    const end = words.findIndex(({ text }, index) => index > from && (text === ";" || text === "+"))
    if (end < 0) return unknown
    const found = words
      .slice(from + 1, end)
      .map((word) => (word.text.includes("{}") && word.text !== "{}" ? { ...word, fixed: false } : word))
    if (found[0] === undefined || found[0].text.startsWith("-")) return unknown
    commands.push(found)
    from = end
  }
  return inner({ commands })
}

/** The command of `xargs`, to which words of its input are added or in which they replace a mark. */
const ofXargs = (form: Form, words: ReadonlyArray<Word>): Inner => {
  const { options, rest } = scanned(form, words)
  const replaces = options.some(({ unquoted }) => /^-\w*[Ii]|^--r/.test(unquoted))
  const [first, ...others] = rest
  if (first === undefined) return unknown
  const filled = replaces ? others.map((word) => ({ ...word, fixed: false })) : [...others, added]
  return { ...withForm(form, [...words.slice(0, words.length - rest.length), first, ...filled]), guessed: false }
}

/** Scripts that run later: of `trap`, the first word, of `alias`, the values. */
const ofLater = (name: string, words: ReadonlyArray<Word>): Inner => {
  const operands = words.filter(({ unquoted }) => !unquoted.startsWith("-"))
  const texts = name === "trap" ? operands.slice(0, 1) : operands
  const scripts = texts.map(({ unquoted }) => (name === "trap" ? unquoted : unquoted.replace(/^[^=]*=?/, "")))
  return inner({ scripts, more: true })
}

const innerOfWords = (name: string, words: ReadonlyArray<Word>): Inner => {
  const form = Object.hasOwn(forms, name) ? forms[name] : undefined
  switch (name) {
    case ".":
    case "source":
      return ofFile(words[0]?.text === "--" ? words.slice(1) : words)
    case "alias":
    case "trap":
      return ofLater(name, words)
    case "command":
      if (/^-[vV]$/.test(words[0]?.text ?? "")) return inner({})
      break
    case "env": {
      const { options, rest } = scanned(form ?? plain, words)
      const isPlain = options.every(({ text }) => harmlessVariable.test(text.split("=", 1)[0] ?? ""))
      if (isPlain) return inner({ commands: rest.length === 0 ? [] : [rest] })
      break
    }
    case "find":
      return ofFind(words)
    case "parallel":
      return { ...unknown, reads: words.length === 0, unseen: words.length === 0 }
    case "runuser":
      // With a user as option, it is a wrapper as `sudo` is.
      if (words.some(({ unquoted }) => /^(?:-u|--user)/.test(unquoted))) {
        return withForm({ values: "Ggu", longs: "user group supp-group" }, words)
      }
      break
    case "timeout": {
      const [first] = words
      if (first !== undefined && !/^(?:-|\d+(?:\.\d+)?[smhd]?$)/.test(first.unquoted)) {
        return { ...withForm(form ?? plain, words), more: true }
      }
      break
    }
    case "xargs":
      return ofXargs(form ?? plain, words)
  }
  if (shells.has(name) && form === undefined) return ofShell(name, words)
  return form === undefined ? unknown : withForm(form, words)
}

/** What the wrapper runs, as far as the line shows it. */
export const innerOf = (command: SimpleCommand): Inner => {
  const name = nameOf(command)
  const words = command.words.slice(1)
  const found = innerOfWords(name, words)
  // A word that can become several may become an option.
  return name !== "find" && words.some(({ splits }) => splits) ? { ...found, more: true } : found
}

const deepest = 16

/** Whether the command, or one that it runs, executes its standard input. Many wrappers within each other may. */
export const executesInput = (command: SimpleCommand, depth = 0): boolean => {
  if (!isWrapper(command)) return false
  if (isReader(command) || depth >= deepest) return true
  const { commands, reads } = innerOf(command)
  return reads || commands.some((words) => executesInput({ ...command, words }, depth + 1))
}
