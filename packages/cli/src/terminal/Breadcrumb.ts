/** Remembers per terminal which session was prompted last: a file with folder and session. Spec: CL-261, CL-262. */
import { readFile, readlink, rename, rm, writeFile } from "node:fs/promises"
import { homedir } from "node:os"
import { join } from "node:path"
import { isatty } from "node:tty"
import { Effect, Either, Schema } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import { makeFolders } from "@daybook/log/storage/PrivateFile"
import { terminalID } from "@daybook/log/support/TerminalID"
import { dataFolder } from "../support/Paths.ts"

/** What a terminal did last. */
type Breadcrumb = { readonly directory: string; readonly sessionID: SessionID }

/** Of stdin, stdout and stderr. */
const descriptors = [0, 1, 2]

/** The device of stdin, stdout or stderr, whichever is a terminal. */
const device = async (): Promise<string | undefined> => {
  for (const fd of descriptors.filter(isatty)) {
    const path = await readlink(`/proc/self/fd/${fd}`).catch(() => undefined)
    if (path !== undefined) return path
  }
  return undefined
}

const isTerminal = () => descriptors.some(isatty)

const folder = () => join(dataFolder(process.env, homedir()), "terminals")

/** The file of this terminal; undefined without a terminal. */
const file = async (): Promise<string | undefined> => {
  if (!isTerminal()) return undefined
  const id = terminalID(await device(), process.env)
  return id === undefined ? undefined : join(folder(), id)
}

const isSession = Schema.decodeUnknownEither(SessionID)

/** Reads the two lines; undefined for anything else. */
export const parse = (text: string): Breadcrumb | undefined => {
  const [directory = "", session, ...rest] = text.split("\n")
  const sessionID = isSession(session)
  return directory === "" || Either.isLeft(sessionID) || rest.join("") !== ""
    ? undefined
    : { directory, sessionID: sessionID.right }
}

/** What this terminal did last. */
export const last: Effect.Effect<Breadcrumb | undefined> = Effect.promise(async () => {
  const path = await file()
  if (path === undefined) return undefined
  const text = await readFile(path, "utf8").catch(() => "")
  return parse(text)
})

const write = async ({ directory, sessionID }: Breadcrumb): Promise<void> => {
  const path = await file()
  // A line end in the folder's name would be a third line.
  if (path === undefined || directory.includes("\n")) return
  await makeFolders(folder(), 0o700)
  const fresh = `${path}.${process.pid}`
  try {
    await writeFile(fresh, `${directory}\n${sessionID}\n`, { mode: 0o600 })
    await rename(fresh, path)
  } finally {
    await rm(fresh, { force: true })
  }
}

/** Records a session of this terminal. A failure only means that `daybook continue` finds another one. */
export const leave = (breadcrumb: Breadcrumb): Effect.Effect<void> =>
  Effect.tryPromise(() => write(breadcrumb)).pipe(
    Effect.catchAll((error) => Effect.logDebug("the terminal's last session was not recorded", error))
  )
