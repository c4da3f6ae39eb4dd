/** Parses the words after `ctx` and refuses everything that needs no file to be refused. Pure. Spec: CL-100, CL-102. */
import { didYouMean } from "../support/Nearest.ts"
import { canonicalCwd, type House, isName, isSessionName, nameRule } from "./Place.ts"
import { usage } from "./Refused.ts"

export const verbs = ["history", "latest", "resume", "sessions"] as const
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
