/**
 * The texts that start and drive a live shell. The shell is interactive, without line editing and job control: an interrupt ends
 * a whole list and the shell stays. Its own standard output and error lead nowhere, so that prompts, traces and traps print
 * nothing; copies of the real streams are parked at descriptors that a command does not have. Pure. `KeeperScript.ts` has the
 * text of the program beside it. Spec: SL-13..SL-19 in specs/shell.md.
 */

/** The shells that Daybook can drive. */
export type Dialect = "bash" | "sh"

/** A word for a shell, taken literally. */
export const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** Names a shell's processes: all of them inherit the variable. */
export const markVariable = "DAYBOOK_SHELL"
/** Names the processes that one command started. */
export const callVariable = "DAYBOOK_CALL"

/** Sent to bash before an interrupt, so that the rest of a list does not run if a child survives the interrupt. */
export const abortSignal = 64

/** Descriptors of the real streams while they are parked. A POSIX shell knows only one digit. */
const parked = {
  bash: { stdout: 60, stderr: 61, control: 62, input: 63 },
  sh: { stdout: 7, stderr: 8, control: 9, input: 6 }
} as const

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
 * Removes a function named `builtin`, enables the builtins of the frame, and unsets variables that end an interactive shell. Only
 * POSIX mode finds `unset` before a function of that name.
 */
const bashHeal = [
  String.raw`if [[ :$SHELLOPTS: == *:posix:* ]]; then \unset -f builtin`,
  String.raw`elif [[ :$BASHOPTS: == *:inherit_errexit:* ]]; then POSIXLY_CORRECT=1; \unset -f builtin; \unset POSIXLY_CORRECT`,
  String.raw`else POSIXLY_CORRECT=1; \unset -f builtin; \unset POSIXLY_CORRECT; \builtin shopt -u inherit_errexit; fi`,
  String.raw`\builtin : || { \unset -f enable; \enable builtin; }`,
  String.raw`\builtin enable enable eval exec export kill printf pwd return unset`,
  String.raw`\builtin unset -v PROMPT_COMMAND TMOUT`
].join("\n")

export interface Setup {
  /** The target of the control descriptor's redirection. */
  readonly control: "&3" | { readonly path: string }
  readonly mark: string
  /** Printed to the control stream whenever the shell reads lines again. */
  readonly idle: string
}

const functions = (dialect: Dialect, { idle, mark }: Setup): string => {
  const { control, input, stderr, stdout } = parked[dialect]
  const run = dialect === "bash" ? String.raw`\builtin` : String.raw`\command`
  const heal = dialect === "bash" ? bashHeal : String.raw`\unset -f command`
  return [
    // $1: the token. $2: number of the command. $3: exit code of the command before, which the command finds in $?.
    `_db_b(){`,
    `${run} export ${callVariable}=${mark}.$2`,
    `${run} printf '%s<' "$1" >&${stdout}`,
    `${run} printf '%s<' "$1" >&${stderr}`,
    `${run} return "$3"`,
    "}",
    // $1: the token. No variable holds the exit code, because a command can make any variable read-only.
    String.raw`_db_e(){ \_db_f "$1" "$?"`,
    "}",
    // $1: the token. $2: the exit code.
    "_db_f(){",
    heal,
    // A command's `exec` can keep bash from restoring its streams.
    `${run} exec <&${input} >/dev/null 2>&1`,
    ...(dialect === "bash"
      ? [`${run} printf '%s> %s %s\\n\\0' "$1" "$2" "$DIRSTACK" >&${control}`]
      : [
          `${run} printf '%s> %s ' "$1" "$2" >&${control}`,
          `${run} pwd >&${control}`,
          `${run} printf '\\0' >&${control}`
        ]),
    `${run} printf '%s>' "$1" >&${stdout}`,
    `${run} printf '%s>' "$1" >&${stderr}`,
    "}",
    // $1: number of the command.
    "_db_i(){",
    `${run} printf '%s\\0' "${idle} $1 $?" >&${control}`,
    "}"
  ].join("\n")
}

/** What a fresh shell is sent first. It answers with `idle` on the control stream. */
export const setup = (dialect: Dialect, options: Setup): string => {
  const { control, input, stderr, stdout } = parked[dialect]
  const target = options.control === "&3" ? "&3 3>&-" : quoted(options.control.path)
  const park = `exec ${input}<&0 ${stdout}>&1 ${stderr}>&2 ${control}>${target} >/dev/null 2>&1`
  const lines =
    dialect === "bash"
      ? [
          "PS1= PS2= PS0= PROMPT_COMMAND=",
          park,
          "set +m +o history +H",
          `trap '\\builtin kill -INT $$' ${abortSignal}`,
          functions(dialect, options),
          "readonly -f _db_b _db_e _db_f _db_i",
          // Names the folder without a fork, and no assignment changes it.
          "readonly DIRSTACK"
        ]
      : // BusyBox takes a signal that comes while it waits for a line for the end of its input.
        ["PS1= PS2= PS4=", park, "set +m", "command set -o ignoreeof", functions(dialect, options)]
  return `${lines.join("\n")}\n:\n_db_i 0\n`
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
 * input while the command runs, and no prompt comes between.
 */
export const line = (dialect: Dialect, { before, command, input: file, number, token }: Line): string => {
  const { control, input, stderr, stdout } = parked[dialect]
  const run = dialect === "bash" ? String.raw`\builtin` : String.raw`\command`
  // After ||, the code neither ends a shell with `set -e` nor runs a trap of ERR.
  const begin = `\\_db_b ${token} ${number} ${before}${before === 0 ? ";" : "||"}`
  const streams =
    `<${file === undefined ? "/dev/null" : quoted(file)} >&${stdout} 2>&${stderr} ` +
    `${input}<&- ${stdout}>&- ${stderr}>&- ${control}>&-`
  // A shell that cannot report the end would not answer again.
  return `${begin}${run} eval ${quoted(command)} ${streams};\\_db_e ${token}||\\kill -KILL $$\n`
}

/** The command in a folder, where the shell stays. A folder that cannot be entered is the command's failure. */
export const inFolder = (dialect: Dialect, folder: string, command: string): string => {
  const run = dialect === "bash" ? String.raw`\builtin` : String.raw`\command`
  return `${run} cd -- ${quoted(folder)} && ${run} eval ${quoted(command)}`
}

/**
 * Sent after a command's line: the shell answers when it reads lines again, also if an interrupt took the end. A POSIX shell reads
 * ahead and forgets what it has read at an interrupt, so that it is sent this when the command runs.
 */
export const idleLine = (number: number): string => `\\_db_i ${number}\n`

/**
 * Asks for the end. Also once more, after an interrupt took the line that has it: the line has no quote, because an interrupt can
 * leave the rest of it, and a single quote would take the lines that follow.
 */
export const end = (token: string): string => `\\_db_e ${token}\n`
