/**
 * Names of entry logs and their folders. Folders encode the working directory, but lossily: `/a/b-c` and `/a-b/c` share
 * one, so that only the header says where a session works. Pure. Spec: FM-90, FM-91 (OP-9, OP-11, D-4).
 */
import { Option, String as Str } from "effect"

const separators = /[/\\:]/g

/** The folder of a working directory, as seed 002 writes it. */
export const seedFolder = (cwd: string): string => `--${cwd.replace(/^[/\\]/, "").replace(separators, "-")}--`

/** The path below a folder: empty for the folder itself, undefined if it is not below. */
const below = (folder: string, path: string): string | undefined => {
  const base = folder.replace(/[/\\]+$/, "")
  if (base === "") return undefined
  if (path === base) return ""
  return path.startsWith(`${base}/`) || path.startsWith(`${base}\\`) ? path.slice(base.length + 1) : undefined
}

/** Where this user's files are, for the forms of folder names that other tools write. */
export interface Places {
  readonly home: string
  readonly temp: string
}

/** Every folder that logs of a working directory may be in; the first is the one that is written. */
export const foldersOf = (cwd: string, { home, temp }: Places): ReadonlyArray<string> => {
  const [inHome, inTemp] = [below(home, cwd), below(temp, cwd)]
  return [
    seedFolder(cwd),
    ...(inHome === undefined ? [] : [`-${inHome.replace(separators, "-")}`]),
    ...(inTemp === undefined ? [] : [inTemp === "" ? "-tmp" : `-tmp-${inTemp.replace(separators, "-")}`])
  ]
}

export const logEnding = ".jsonl"

/** The name of a log: its time, so that names sort by time, and its id. */
export const logName = (time: number, id: string): string =>
  `${new Date(time).toISOString().replace(/[:.]/g, "-")}_${id}${logEnding}`

/** The id in the name of a log; undefined if the name has another form. */
export const idInName = (name: string): string | undefined => /_([^_]+)\.jsonl$/.exec(name)?.[1]

/** One line without control characters and repeated spaces; none if nothing is left. */
export const oneLine = (text: string): Option.Option<string> =>
  // oxlint-disable-next-line no-control-regex
  Option.liftPredicate(text.replace(/[\s\u0000-\u001f\u007f-\u009f]+/g, " ").trim(), Str.isNonEmpty)

/** Characters of a name in a list. */
const nameLength = 40

/** A name for a list: one line, cut with an ellipsis, never within a character. */
export const shortName = (text: string): string => {
  if (text.length <= nameLength) return text
  // A character has at most two units.
  const characters = Array.from(text.slice(0, 2 * nameLength + 2))
  return characters.length <= nameLength ? text : `${characters.slice(0, nameLength - 1).join("")}…`
}
