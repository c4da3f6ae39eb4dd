/**
 * The texts that start and drive a live shell. The shell is interactive, without line editing and job control: an interrupt ends
 * a whole list and the shell stays. Its own standard output and error lead nowhere, so that prompts, traces and traps print
 * nothing; copies of the real streams are parked at descriptors that a command does not have. Pure. `KeeperScript.ts` has the
 * text of the program beside it. Spec: SL-13..SL-19 in specs/shell.md.
 */

import * as StreamCutter from "./StreamCutter.ts"

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

/** Sent to bash before an interrupt, so that the rest of a list does not run if a child survives the interrupt. */
export const abortSignal = 64

/**
 * Descriptors of the real streams while they are parked. For bash the last two below 64: it saves what they replace in the next free
 * ones above them, which a command does not close by chance. A POSIX shell knows only one digit; only it needs its input again. Each
 * parked descriptor costs a bash ten system calls a command.
 */
const parked = {
  bash: { stdout: 62, stderr: 63 },
  sh: { stdout: 7, stderr: 8 }
} as const
const parkedInput = 6

export interface Bootstrap {
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

/**
 * The functions of a bash. What precedes the report delays each answer, and bash copies the body of a function at each call: rare
 * work has a function of its own, and the report comes before what repairs the shell for the next command. In all of them, $1 is
 * the token.
 */
const bashFunctions = (mark: string): ReadonlyArray<string> => {
  const { begin, end, note } = StreamCutter.markOf
  const { stderr, stdout } = parked.bash
  const print = (text: string, to: number, more = "") => String.raw`\builtin printf "${text}"${more} >&${to}`
  // In one piece, so that no job's output comes into it.
  const report = `${print(String.raw`${end("$1")}\0`, stderr)}&&${print(String.raw`${end("$1")}$2 %s\0`, stdout, ' "$DIRSTACK"')}`
  return [
    // $2: number of the command.
    "_db_b(){",
    String.raw`\builtin export ${callVariable}=${callMark(mark, "$2")}`,
    print(begin("$1"), stdout),
    print(begin("$1"), stderr),
    "}",
    // $3: exit code of the command before, which the command finds in $?.
    "_db_c(){",
    String.raw`\_db_b "$1" "$2"`,
    String.raw`\builtin return "$3"`,
    "}",
    // $2: the exit code. No variable holds it, because a command can make any variable read-only.
    "_db_f(){",
    String.raw`\_db_h`,
    // Without `return` the function would go on.
    String.raw`${report}||\_db_r "$1" "$2"||{ \builtin return; \kill -KILL $$; }`,
    String.raw`\builtin enable eval export`,
    "if [[ ${PROMPT_COMMAND[*]+x}${TMOUT+x} || $- == *t* ]]; then \\_db_u||\\builtin return 0; fi",
    "}",
    // A command disabled the builtins that report.
    "_db_r(){",
    String.raw`\_db_u`,
    report,
    "}",
    String.raw`_db_e(){ \_db_f "$1" "$?"`,
    "}",
    "_db_i(){",
    print(String.raw`${note("$1")}$?\0`, stdout),
    "}",
    // Enables all builtins of the frame, and unsets variables and an option that end an interactive shell.
    "_db_u(){",
    String.raw`\builtin enable eval export kill printf return set unset`,
    String.raw`\builtin set +t`,
    String.raw`\builtin unset -v PROMPT_COMMAND TMOUT`,
    "}",
    // Returns, unless a command disabled `return` or named a function `builtin`.
    "_db_h(){",
    String.raw`\builtin return 0`,
    String.raw`\_db_g`,
    "}",
    // Removes the function. Only POSIX mode finds `unset` before a function of that name.
    "_db_g(){",
    String.raw`if [[ :$SHELLOPTS: == *:posix:* ]]; then \unset -f builtin`,
    String.raw`elif [[ :$BASHOPTS: == *:inherit_errexit:* ]]; then POSIXLY_CORRECT=1; \unset -f builtin; \unset POSIXLY_CORRECT`,
    String.raw`else POSIXLY_CORRECT=1; \unset -f builtin; \unset POSIXLY_CORRECT; \builtin shopt -u inherit_errexit; fi`,
    String.raw`\builtin : || { \unset -f enable; \enable builtin; }`,
    String.raw`\_db_u`,
    "}",
    "readonly -f _db_b _db_c _db_e _db_f _db_g _db_h _db_i _db_r _db_u"
  ]
}

/** The same for a POSIX shell. */
const shFunctions = (mark: string): ReadonlyArray<string> => {
  const { begin, end, note } = StreamCutter.markOf
  const { stderr, stdout } = parked.sh
  const print = (text: string, to: number, more = "") => String.raw`\command printf '${text}' "$1"${more} >&${to}`
  const report = (folder: string) => print(String.raw`${end("%s")}%s %s\0`, stdout, ` "$2" ${folder}`)
  return [
    "_db_b(){",
    String.raw`\command export ${callVariable}=${callMark(mark, "$2")}`,
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
    String.raw`_db_e(){ \_db_f "$1" "$?"`,
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
          `trap '\\builtin kill -INT $$' ${abortSignal}`,
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
  return `\n${begin}${run} eval ${quoted(command)} ${streams};\\_db_f ${token} "$?"||\\kill -KILL $$\n`
}

/** The command in a folder, where the shell stays. A folder that cannot be entered is the command's failure. */
export const inFolder = (dialect: Dialect, folder: string, command: string): string => {
  const run = dialect === "bash" ? String.raw`\builtin` : String.raw`\command`
  return `${run} cd -- ${quoted(folder)} && ${run} eval ${quoted(command)}`
}

/**
 * Sent while a command runs: the shell answers when it reads lines again, also if an interrupt took the end. Not before it runs: a
 * POSIX shell reads ahead, and forgets what it has read at an interrupt.
 */
export const noteLine = (token: string): string => `\n\\_db_i ${token}\n`

/**
 * Asks for the end. Also once more, after an interrupt took the line that has it: the line has no quote, because an interrupt can
 * leave the rest of it, and a single quote would take the lines that follow.
 */
export const end = (token: string): string => `\n\\_db_e ${token}\n`
