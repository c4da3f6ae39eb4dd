/**
 * Reads the file that `daybook setup` keeps in the person's data folder: keys of model servers, the address of a server, the
 * default model, and which keys are in the system's keychain. `host/Keys.ts` writes it. Spec: CL-781, CL-782 in specs/cli.md.
 */
import { readFileSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"
import { parseEnv } from "node:util"
import { dataFolder } from "../support/Paths.ts"

const modelVariable = "DAYBOOK_MODEL"

/** Names the variables whose keys are in the system's keychain (`Keychain.ts`), with commas between. */
export const keychainVariable = "DAYBOOK_KEYCHAIN"

/** The names that the file may set. Anything else in it has no effect. */
const isKept = (name: string): boolean =>
  /^(?:[A-Z][A-Z0-9_]{0,63}_(?:KEY|TOKEN)|DAYBOOK_MODEL|DAYBOOK_BASE_URL|DAYBOOK_KEYCHAIN)$/.test(name)

/** The file. */
export const path = (): string => join(dataFolder(process.env, homedir()), "keys.env")

/** What the file sets; nothing if there is none. */
export const read = (): Readonly<Record<string, string>> => {
  let text: string
  try {
    text = readFileSync(path(), "utf8")
  } catch {
    return {}
  }
  const kept = Object.entries(parseEnv(text)).flatMap(([name, value]) =>
    isKept(name) && value !== undefined ? [[name, value] as const] : []
  )
  return Object.fromEntries(kept)
}

/** Whether the variable is a setting of the file, and none of the environment. */
export const isSetting = (name: string): boolean => name === modelVariable || name === keychainVariable

/** Sets what the environment does not, without the model: the configuration's comes before it. */
export const load = (): void => {
  for (const [name, value] of Object.entries(read())) {
    if (!isSetting(name) && (process.env[name] ?? "") === "") process.env[name] = value
  }
}

/** The variables whose keys are in the system's keychain. */
export const namedInKeychain = (): ReadonlyArray<string> =>
  (read()[keychainVariable] ?? "").split(",").filter((name) => /_(?:KEY|TOKEN)$/.test(name) && isKept(name))

/** The default model that setup keeps, as written. */
export const model = (): string | undefined => read()[modelVariable]
