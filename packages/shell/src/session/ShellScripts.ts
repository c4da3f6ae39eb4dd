/**
 * The texts that start and drive a live shell. The shell is interactive, without line editing and job control: an interrupt ends
 * a whole list and the shell stays. Its own standard output and error lead nowhere, so that prompts, traces and traps print
 * nothing; copies of the real streams are parked at descriptors that a command does not have. Pure. `Keeper.ts` has the
 * text of the program beside it. Spec: SL-13..SL-19 in specs/shell.md.
 */

import * as Dialogue from "./Dialogue.ts"

/** The shells that Daybook can drive. */
export type Dialect = "bash" | "sh"

/** A word for a shell, taken literally. */
export const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** Names a shell's processes: all of them inherit the variable. */
export const markVariable = "DAYBOOK_SHELL"
/** Names the processes that one command started. */
export const callVariable = "DAYBOOK_CALL"

/** A number for a mark: of 15 digits at most, so that a bash can calculate with it and a command's number. */
export const numberOf = (mark: string): number => Buffer.from(mark, "latin1").readUIntBE(0, 6)

/** The value that a command's processes have. A number, because a command can make the variable one that takes nothing else. */
export const callMark = (mark: string, command: string): string => `${numberOf(mark)}${command}`

/**
 * The limit of file locks, which no kernel enforces any more, names the shell's processes too: they inherit it also without the
 * variable. Bash and BusyBox call it -x, dash -w.
 */
const limit = (mark: string): string => `ulimit -S -x ${numberOf(mark)}||ulimit -S -w ${numberOf(mark)}`

/**
 * Ends the running list of a bash, whatever traps it has and however its commands end. A real-time signal that differs from shell to
 * shell, so that no command has a trap for it by chance.
 */
export const abortSignal = (mark: string): number => 36 + (numberOf(mark) % 24)

/** What bash does then: interrupts itself, without a trap of its user, which it keeps for later. The traces lead nowhere. */
const abort =
  String.raw`{ _db_s="$(\builtin trap -p INT)"; [[ $_db_s ]]&&_db_t=$_db_s; ` +
  String.raw`\builtin trap - INT; \builtin kill -INT $$; } 2>/dev/null`

/**
 * Descriptors of the real streams while they are parked. Bash takes descriptors for a command from 10 upwards, and for a coprocess
 * and a substituted process from 63 downwards: between the two, nothing meets them. It saves what they replace in the next free ones
 * above them. A POSIX shell knows only one digit; only it needs its input again. Each parked descriptor costs a bash ten system calls a
 * command.
 */
const parked = {
  bash: { stdout: 50, stderr: 51 },
  sh: { stdout: 7, stderr: 8 }
} as const
const parkedInput = 6

interface Bootstrap {
  /** The line that says how the shell was started begins with it. */
  readonly token: string
  /** Value of `DAYBOOK_SHELL`. */
  readonly mark: string
  readonly cwd: string | undefined
}

/** Variables that keep programs from asking, colouring and paging. */
const calm = "TERM=dumb NO_COLOR=1 PAGER=cat GIT_PAGER=cat MANPAGER=cat SYSTEMD_PAGER=cat GIT_TERMINAL_PROMPT=0"

/** Exit code of a bootstrap whose folder cannot be entered. */
export const noFolder = 122

/** Starts bash, or sh where there is none, and prints `TOKEN DIALECT PID` before. */
export const bootstrap = ({ cwd, mark, token }: Bootstrap): string =>
  [
    ...(cwd === undefined ? [] : [`cd -- ${quoted(cwd)} || exit ${noFolder}`]),
    `export ${markVariable}=${mark} ${calm}`,
    // In a shell that a command of another live shell opens, the call is not its processes'.
    `unset ENV BASH_ENV HISTFILE PROMPT_COMMAND TMOUT ${callVariable}`,
    "if command -v bash >/dev/null 2>&1",
    `then printf '%s bash %s\\n' ${token} "$$"; exec bash --noprofile --norc --noediting -i`,
    `else printf '%s sh %s\\n' ${token} "$$"; exec sh -i`,
    "fi"
  ].join("\n")

/** Parts of a bash's functions. $1 is the token. */
const bashParts = (mark: string) => {
  const { begin, end, note } = Dialogue.markOf
  const { stderr, stdout } = parked.bash
  const print = (text: string, to: number, more = "") => String.raw`\builtin printf "${text}"${more} >&${to}`
  // In one piece, so that no job's output comes into it.
  const report = (code: string) =>
    `${print(String.raw`${end("$1")}\0`, stderr)}&&${print(String.raw`${end("$1")}${code} %s\0`, stdout, ' "$DIRSTACK"')}`
  return {
    /** $2: number of the command. */
    beginning: [
      // Under `set -e` the shell would end here if a command had made the variable read-only.
      String.raw`\builtin declare -gx ${callVariable}=${callMark(mark, "$2")}||((1))`,
      print(begin("$1"), stdout),
      print(begin("$1"), stderr)
    ],
    /**
     * With this limit, a function named `builtin` is an error that ends the line, before it runs. The code is kept for that case. As
     * arithmetic, because an assignment to a variable that a command made read-only would end the line too.
     */
    guard: (code: string) => `((_db_c=${code},FUNCNEST=1))`,
    /**
     * Fails when the shell needs a repair. With `set -T` it reports nothing, because a trap of DEBUG can have changed the token. The
     * second case finds variables and an option that end an interactive shell.
     */
    ending: (code: string) => [
      `case $- in *T*) ((0));; *) ${report(code)}&&{`,
      "((_db_c=-1,FUNCNEST=0))",
      String.raw`\builtin enable eval declare`,
      "case $-${PROMPT_COMMAND[*]+:}${TMOUT+:} in *[t:]*) ((0));; esac",
      "};;",
      "esac"
    ],
    /** Removes a function named `builtin`: only POSIX mode finds `unset` before a function of that name. */
    repair: [
      "if ((${FUNCNEST:-0}==1)); then",
      String.raw`if [[ :$SHELLOPTS: == *:posix:* ]]; then \unset -f builtin`,
      String.raw`elif [[ :$BASHOPTS: == *:inherit_errexit:* ]]; then POSIXLY_CORRECT=1; \unset -f builtin; \unset POSIXLY_CORRECT`,
      String.raw`else POSIXLY_CORRECT=1; \unset -f builtin; \unset POSIXLY_CORRECT; \builtin shopt -u inherit_errexit; fi`,
      String.raw`\builtin : || { \unset -f enable; \enable builtin; }`,
      "fi",
      String.raw`\builtin enable declare eval kill printf return set unset`,
      String.raw`\builtin set +tT`,
      String.raw`\builtin unset -v PROMPT_COMMAND TMOUT`
    ],
    open: String.raw`\builtin printf '' >&${stdout}&&\builtin printf '' >&${stderr}`,
    note: print(String.raw`${note("$1")}$_db_c\0`, stdout)
  }
}

/**
 * The functions of a bash. What precedes the report delays each answer, and bash copies the body of a function at each call: rare
 * work has a function of its own. None calls another one, because a command can forbid that with `FUNCNEST`.
 */
const bashFunctions = (mark: string): ReadonlyArray<string> => {
  const { beginning, ending, guard, note, open, repair } = bashParts(mark)
  return [
    "_db_b(){",
    ...beginning,
    "}",
    // $3: exit code of the command before, which the command finds in $?.
    "_db_c(){",
    ...beginning,
    String.raw`\builtin return "$3"`,
    "}",
    // $2: the exit code.
    "_db_f(){",
    guard("$2"),
    ...ending("$2"),
    "}",
    "_db_e(){",
    guard("$?"),
    // A trap of an interrupt that `abort` took away.
    'if [[ ${_db_t-} ]]; then \\builtin eval "\\builtin $_db_t"; \\builtin unset -v _db_t; fi',
    ...ending("$_db_c"),
    "}",
    // Ends a shell that lost its streams; from another one, the end is asked for again. A condition, so that `set -e` does not end it.
    "_db_u(){",
    "if",
    ...repair,
    open,
    "then ((1))",
    String.raw`else \builtin kill -KILL $$||\kill -KILL $$`,
    "fi",
    "}",
    // Before it, the shell was repaired: only a trap can have set -T again.
    "_db_i(){",
    String.raw`case $- in *T*) \builtin kill -KILL $$;; esac`,
    note,
    // A command can have made the variable read-only.
    "((_db_c=-1))||((1))",
    "}",
    "readonly -f _db_b _db_c _db_e _db_f _db_i _db_u"
  ]
}

/** The same for a POSIX shell. */
const shFunctions = (mark: string): ReadonlyArray<string> => {
  const { begin, end, note } = Dialogue.markOf
  const { stderr, stdout } = parked.sh
  const print = (text: string, to: number, more = "") => String.raw`\command printf '${text}' "$1"${more} >&${to}`
  const report = (folder: string) => print(String.raw`${end("%s")}%s %s\0`, stdout, ` "$2" ${folder}`)
  return [
    "_db_b(){",
    String.raw`\command export ${callVariable}=${callMark(mark, "$2")}||\command :`,
    print(begin("%s"), stdout),
    print(begin("%s"), stderr),
    "}",
    "_db_c(){",
    String.raw`\_db_b "$1" "$2"`,
    String.raw`\command return "$3"`,
    "}",
    "_db_f(){",
    String.raw`\unset -f command`,
    // A command's `exec` can keep the shell from restoring its streams.
    String.raw`\command exec <&${parkedInput} >/dev/null 2>&1`,
    print(String.raw`${end("%s")}\0`, stderr),
    // It needs another process to name the folder, and may have none left.
    String.raw`\command eval ${quoted(report(String.raw`"$(\command pwd)"`))} || ${report('""')}`,
    "}",
    // A dash assigns `_` after each command, and if it is read-only, ends the line before the command is run.
    "_db_e(){",
    String.raw`\command eval _=||\command kill -KILL $$`,
    String.raw`\_db_f "$1" 0`,
    "}",
    "_db_i(){",
    print(String.raw`${note("%s")}%s\0`, stdout, ' "$?"'),
    "}"
  ]
}

/** What a fresh shell is sent first. `mark` names the shell's processes. */
export const setup = (dialect: Dialect, mark: string): string => {
  const { stderr, stdout } = parked[dialect]
  const input = dialect === "bash" ? "" : `${parkedInput}<&0 `
  const park = `exec ${input}${stdout}>&1 ${stderr}>&2 >/dev/null 2>&1`
  const lines =
    dialect === "bash"
      ? [
          "PS1= PS2= PS0= PROMPT_COMMAND=",
          park,
          limit(mark),
          "set +m +o history +H",
          `trap ${quoted(abort)} ${abortSignal(mark)}`,
          ...bashFunctions(mark),
          // No assignment changes it.
          "readonly DIRSTACK"
        ]
      : // BusyBox takes a signal that comes while it waits for a line for the end of its input.
        ["PS1= PS2= PS4=", park, limit(mark), "set +m", "command set -o ignoreeof", ...shFunctions(mark)]
  return `${lines.join("\n")}\n:\n`
}

export interface Line {
  readonly token: string
  readonly number: number
  readonly command: string
  /** Exit code of the command before. */
  readonly before: number
  /** File that is the command's standard input. */
  readonly input: string | undefined
}

/**
 * Runs a command. It is one line, because a line is read as a whole before anything of it runs: the token is not in the shell's
 * input while the command runs, and no prompt comes between. As each text that the shell is sent, it begins with a line break: a
 * command can write into the shell's input, and this ends its text.
 */
export const line = (dialect: Dialect, { before, command, input: file, number, token }: Line): string => {
  const { stderr, stdout } = parked[dialect]
  const run = dialect === "bash" ? String.raw`\builtin` : String.raw`\command`
  // After ||, the code neither ends a shell with `set -e` nor runs a trap of ERR.
  const begin = before === 0 ? `\\_db_b ${token} ${number};` : `\\_db_c ${token} ${number} ${before}||`
  const streams =
    `<${file === undefined ? "/dev/null" : quoted(file)} >&${stdout} 2>&${stderr} ` +
    `${dialect === "bash" ? "" : `${parkedInput}<&- `}${stdout}>&- ${stderr}>&-`
  // A shell that cannot report the end would not answer again.
  const failed = dialect === "bash" ? String.raw`\_db_u` : String.raw`\kill -KILL $$`
  return `\n${begin}${run} eval ${quoted(command)} ${streams};\\_db_f ${token} "$?"||${failed}\n`
}

/** The command in a folder, where the shell stays. A folder that cannot be entered is the command's failure. */
export const inFolder = (dialect: Dialect, folder: string, command: string): string => {
  const run = dialect === "bash" ? String.raw`\builtin` : String.raw`\command`
  return `${run} cd -- ${quoted(folder)} && ${run} eval ${quoted(command)}`
}

/**
 * Sent while a command runs: the shell answers when it reads lines again, also if an interrupt discarded the end. It is not sent
 * before the command runs, because a POSIX shell reads ahead and discards those lines at an interrupt. A bash keeps the exit code.
 */
export const noteLine = (dialect: Dialect, token: string): string => {
  const repair = "((_db_c=${_db_c:--1}<0?$?:_db_c,1));\\_db_u;"
  return `\n${dialect === "bash" ? repair : ""}\\_db_i ${token}||\\kill -KILL $$\n`
}

/**
 * Asks for the end. Also once more, after an interrupt took the line that has it: the line has no quote, because an interrupt can
 * leave the rest of it, and a single quote would take the lines that follow.
 */
export const end = (dialect: Dialect, token: string): string =>
  `\n\\_db_e ${token}||${dialect === "bash" ? String.raw`\_db_u` : String.raw`\kill -KILL $$`}\n`
