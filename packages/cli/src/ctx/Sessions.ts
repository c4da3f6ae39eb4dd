/** Finds the requested session and reads its small files. Spec: CL-101, CL-106 in specs/cli.md (AB-2, IX-1..IX-5). */
import { join } from "node:path"
import { checkRoot, folder, value } from "./Files.ts"
import { cwdHash, defaultSession, houseSegments, houseWords, isSessionName, type House } from "./Place.ts"
import { absent, damaged } from "./Refused.ts"

/** The existing sessions of an agent or a model. */
export interface Sessions {
  readonly root: string
  readonly house: House
  readonly segments: ReadonlyArray<string>
}

/** The requested sessions; an error if there are none. */
export const open = (root: string, house: House): Sessions => {
  checkRoot(root)
  const segments = houseSegments(house)
  if (folder(root, segments) === undefined) {
    throw absent(`there are no sessions of ${houseWords(house)} at ${root}`)
  }
  return { root, house, segments }
}

/** The name in a file of the index. It becomes part of a path, so an invalid name is an error. */
const indexed = ({ root, segments }: Sessions, ...names: ReadonlyArray<string>): string | undefined => {
  const index = folder(root, [...segments, "index", ...names.slice(0, -1)])
  if (index === undefined) return undefined
  const path = join(index, names.at(-1) ?? "")
  const name = value(path)
  if (name !== undefined && !isSessionName(name)) throw damaged(`${path} does not contain a session's name`)
  return name
}

/** The index's folder; `undefined` if it does not exist. */
export const indexFolder = ({ root, segments }: Sessions) => folder(root, [...segments, "index"])

/** The current session's name, else the default one's. */
export const currentName = (sessions: Sessions): string => indexed(sessions, "current") ?? defaultSession

/** A session's folder; an error if it does not exist. */
export const sessionFolder = (sessions: Sessions, name: string): string => {
  const found = folder(sessions.root, [...sessions.segments, name])
  if (found !== undefined) return found
  throw absent(
    `there is no session ${name} of ${houseWords(sessions.house)}; ctx sessions ${sessions.house.name} lists them`
  )
}

/** The session of a working folder. The index is a hint: the session's own file decides (IX-5). */
export const sessionOfCwd = (sessions: Sessions, cwd: string): string => {
  const name = indexed(sessions, "by-cwd", cwdHash(cwd))
  const path = name === undefined ? undefined : folder(sessions.root, [...sessions.segments, name])
  if (name !== undefined && path !== undefined && value(join(path, "cwd")) === cwd) return name
  throw absent(`no session of ${houseWords(sessions.house)} works in ${cwd}`)
}

/** A value of a session that must exist, because its first export writes it. */
export const needed = (path: string, name: string): string => {
  const found = value(join(path, name))
  if (found === undefined) throw damaged(`${join(path, name)} is missing`)
  return found
}

/** The title in `meta.json`; it is only shown. */
export const title = (path: string): string | undefined => {
  const text = needed(path, "meta.json")
  try {
    const meta: unknown = JSON.parse(text)
    if (typeof meta === "object" && meta !== null && !Array.isArray(meta)) {
      const found = "title" in meta ? meta.title : undefined
      return typeof found === "string" ? found : undefined
    }
  } catch {
    // Reported below.
  }
  throw damaged(`${join(path, "meta.json")} is not a JSON object`)
}
