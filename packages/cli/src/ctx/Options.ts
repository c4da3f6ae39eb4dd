/** Parses the words after `ctx`; refuses what needs no file, with help and exit codes. Pure. Spec: CL-100..CL-103. */
import { createHash } from "node:crypto"
import { didYouMean } from "../support/Nearest.ts"

/** The grammar of names (NA-1). */
export const isName = (text: string): boolean =>
  /^[a-zA-Z0-9][a-zA-Z0-9._+-]{0,63}$/.test(text) && !/\.(sock|d)$/.test(text)

/** Whether the text is a session's name: `index` is the folder beside the sessions (NA-2). */
export const isSessionName = (text: string): boolean => text !== "index" && isName(text)

/** The rule for names, for error messages. */
const nameRule =
  "1-64 letters, digits, dots, underscores, pluses or hyphens, beginning with a letter or digit, not ending in .sock or .d"

/** The session used if none is named and none is current. */
export const defaultSession = "default"

/** An agent's or model's sessions of one owner. */
export interface House {
  readonly kind: "agent" | "model"
  readonly name: string
  /** A user or a shared space. */
  readonly owner: { readonly uid: number } | { readonly shared: string }
}

/** The segments of the folder that holds the sessions and their index, below the root. */
export const houseSegments = ({ kind, name, owner }: House): ReadonlyArray<string> => [
  ...("uid" in owner ? ["home", String(owner.uid)] : ["shared", owner.shared]),
  kind,
  kind === "agent" ? name : `${name}.d`,
  "session"
]

/** For a sentence: `agent coder`, `model m1 in the shared space team`. */
export const houseWords = ({ kind, name, owner }: House): string =>
  `${kind} ${name} ${"uid" in owner ? `of user ${owner.uid}` : `in the shared space ${owner.shared}`}`

/** A working folder in canonical form: absolute, no empty and dot segments; undefined for another text. */
export const canonicalCwd = (text: string): string | undefined => {
  const segments = text.split("/").filter((segment) => segment !== "" && segment !== ".")
  return text.startsWith("/") && !text.includes("\0") && !segments.includes("..") ? `/${segments.join("/")}` : undefined
}

/** The name of a working folder's file in the index. */
export const cwdHash = (cwd: string): string => createHash("sha256").update(cwd, "utf8").digest("hex")

export const exitCode = { ok: 0, failed: 1, usage: 2, denied: 13, unavailable: 69, internal: 70 } as const

/** The errno names of the ABI (FR-5) that `ctx` reports. */
type Code = "EACCES" | "EINVAL" | "EIO" | "ENOENT"

export class Refused extends Error {
  readonly code: Code
  readonly exit: number

  constructor(code: Code, message: string, exit: number) {
    super(message)
    this.name = "Refused"
    this.code = code
    this.exit = exit
  }
}

/** The command line cannot be used. */
export const usage = (message: string) => new Refused("EINVAL", `${message}; see ctx --help`, exitCode.usage)

/** The requested session or value does not exist. */
export const absent = (message: string) => new Refused("ENOENT", message, exitCode.failed)

/** A file is damaged. Nothing is guessed (FL-7): it must be rebuilt from the events. */
export const damaged = (message: string) =>
  new Refused("EIO", `EIO: ${message}; daybook files rebuild rewrites it from the events`, exitCode.failed)

/** The error for a path that the file system refuses to read. */
export const unreadable = (path: string, cause: unknown): Refused => {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause)
  return code === "EACCES" || code === "EPERM"
    ? new Refused("EACCES", `EACCES: you may not read ${path}`, exitCode.denied)
    : new Refused("EIO", `${path} cannot be read (${code})`, exitCode.unavailable)
}

export const help = (version: string): string => `ctx ${version}: sessions of agents as plain files

Usage: ctx COMMAND AGENT [SESSION] [options]

Commands:
  history AGENT [SESSION]     the conversation, from messages.jsonl
  latest AGENT [SESSION]      the last answer, from latest.md
  resume AGENT [--cwd DIR]    the session to continue, and the event id to send as "after"
  sessions AGENT              every session, the last used first

The default SESSION is the current one (index/current), else default. ctx only reads files: it needs no database and changes
no timestamp.

Options:
  --root DIR     the folder of the files (default: DAYBOOK_ROOT, else ctx beside the database; see daybook --help)
  --uid N        the sessions of this user, if you may read them (default: your own)
  --shared NAME  the sessions of a shared space
  --model        AGENT is the name of a model
  --cwd DIR      resume: the session that ran last in this folder, absolute as the agent sees it
  --json         history: the lines of the file; latest, resume: one object; sessions: one object per line
  --help, --version

Exit codes:
  0   done
  1   no such session, or its files are damaged (EIO: daybook files rebuild)
  2   the command line cannot be used
  13  you may not read the files (EACCES)
  69  the files cannot be read, or the output cannot be written
  70  internal error

Examples:
  ctx latest coder
      the last answer of the agent coder
  ctx history coder review-1 | less
      one of its sessions
  ctx history coder --json | jq -r 'select(.role=="user").content[].text'
      the prompts of its current session
  ctx resume coder --cwd /work
      the session to prompt from this folder
`

const verbs = ["history", "latest", "resume", "sessions"] as const
export type Verb = (typeof verbs)[number]

export interface Options {
  readonly verb: Verb
  readonly house: House
  readonly session: string | undefined
  /** Canonical path in the agent's file system. */
  readonly cwd: string | undefined
  /** As typed; by default the environment's. */
  readonly root: string | undefined
  readonly json: boolean
}

const withValue = ["--root", "--uid", "--shared", "--cwd"] as const
type WithValue = (typeof withValue)[number]
const known: ReadonlyArray<string> = [...withValue, "--model", "--json"]

/** A word of the command line, quoted and bounded. */
export const short = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)

const checked = (what: string, text: string, holds: (text: string) => boolean): string => {
  if (holds(text)) return text
  const why = text === "index" ? "index is the name of the index of sessions" : `expected ${nameRule}`
  throw usage(`${what} ${short(text)} is not a valid name: ${why}`)
}

/** Parses a command line without help and version. */
export const parse = (words: ReadonlyArray<string>, ownUid: number): Options => {
  const values = new Map<WithValue, string>()
  const rest: Array<string> = []
  let model = false
  let json = false
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ""
    if (word === "--") {
      rest.push(...words.slice(at + 1))
      break
    }
    if (!word.startsWith("-")) {
      rest.push(word)
      continue
    }
    const equals = word.indexOf("=")
    const name = equals < 0 ? word : word.slice(0, equals)
    const option = withValue.find((each) => each === name)
    if (option !== undefined) {
      const value = equals < 0 ? words[++at] : word.slice(equals + 1)
      if (value === undefined || value === "") throw usage(`${option} needs a value`)
      if (values.has(option)) throw usage(`${option} is given twice`)
      values.set(option, value)
    } else if (word === "--model") model = true
    else if (word === "--json") json = true
    else if (known.includes(name)) throw usage(`${name} takes no value`)
    else throw usage(`ctx has no option ${short(name)}${didYouMean(name, known)}`)
  }

  const [first = "", name, session, ...more] = rest
  const verb = verbs.find((each) => each === first)
  if (verb === undefined)
    throw usage(first === "" ? "no command is given" : `there is no command ${short(first)}${didYouMean(first, verbs)}`)
  if (name === undefined) throw usage(`ctx ${verb}: ${model ? "MODEL" : "AGENT"} is missing`)
  if (more.length > 0) throw usage(`ctx ${verb}: unexpected argument ${short(more[0] ?? "")}`)
  if (session !== undefined && verb !== "history" && verb !== "latest") {
    throw usage(`ctx ${verb} takes no session: ${short(session)}`)
  }
  const cwd = values.get("--cwd")
  if (cwd !== undefined && verb !== "resume") throw usage("--cwd is an option of ctx resume")
  const canonical = cwd === undefined ? undefined : canonicalCwd(cwd)
  if (cwd !== undefined && canonical === undefined) {
    throw usage(`--cwd: ${short(cwd)} is not an absolute path without .. in the agent's file system`)
  }
  return {
    verb,
    house: {
      kind: model ? "model" : "agent",
      name: checked(model ? "the model" : "the agent", name, isName),
      owner: owner(values.get("--uid"), values.get("--shared"), ownUid)
    },
    session: session === undefined ? undefined : checked("the session", session, isSessionName),
    cwd: canonical,
    root: values.get("--root"),
    json
  }
}

const owner = (uid: string | undefined, shared: string | undefined, ownUid: number): House["owner"] => {
  if (shared !== undefined) {
    if (uid !== undefined) throw usage("--shared and --uid exclude each other: a shared space belongs to no user")
    return { shared: checked("the shared space", shared, isName) }
  }
  if (uid === undefined) return { uid: ownUid }
  // The largest uid of Linux is 2^32 - 2; leading zeros are refused.
  if (!/^(?:0|[1-9]\d{0,9})$/.test(uid) || Number(uid) > 4_294_967_294)
    throw usage(`--uid: ${short(uid)} is not a user id`)
  return { uid: Number(uid) }
}
