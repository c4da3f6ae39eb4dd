/**
 * Chooses the folder in which a server's process starts. Without a `cwd`, the process starts in an empty folder of
 * Daybook, so that a project does not decide what `npx` runs. With a `cwd`, the person must trust that folder. Spec:
 * MC-32..MC-35 in specs/tools.md.
 */
import * as fs from "node:fs/promises"
import { tmpdir } from "node:os"
import * as path from "node:path"
import { Effect, Either, type Scope } from "effect"
import { notCounting, projectAt, ProjectTrust } from "@daybook/core/trust/ProjectTrust"
import { makeFolders } from "@daybook/log/storage/PrivateFile"
import { codeOf } from "@daybook/log/support/SystemError"
import { isStdio, type McpServer, ServerFault, type StdioServer } from "./McpServer.ts"

/** Folder and `PATH` of servers without `cwd`, and what is kept of all servers. */
export interface StartOptions {
  /** Created, emptied, and accessible to this user only; a temporary folder by default. */
  readonly folder?: string | undefined
  /** Their `PATH`, unless a server's `env` sets one; this process's `PATH` by default. */
  readonly path?: string | undefined
  /** Where the tools of each server are kept for the next start; nowhere by default. */
  readonly tools?: string | undefined
}

/** The server's effective start configuration; fails with the reason if it may not start. */
export type Start = (server: McpServer) => Effect.Effect<McpServer, ServerFault>

/** Package managers search for a project in parent folders; this file ends the search. */
const marker = "package.json"
const markerText = `{"name":"daybook-servers","private":true}\n`

const unusable = (folder: string, why: string) =>
  new ServerFault({
    details: `the folder in which MCP servers start, ${folder}, cannot be used: ${why}. Move it away, or name another data folder`
  })

const isMarked = async (folder: string): Promise<boolean> => {
  const file = path.join(folder, marker)
  try {
    const stats = await fs.lstat(file)
    return stats.isFile() && stats.size === markerText.length && (await fs.readFile(file, "utf8")) === markerText
  } catch {
    return false
  }
}

/** Creates the folder, restricts it to this user, and removes everything except the marker. */
const prepare = async (folder: string): Promise<Either.Either<string, string>> => {
  await makeFolders(folder, 0o700)
  const stats = await fs.lstat(folder)
  if (!stats.isDirectory()) return Either.left("it is not a folder")
  const uid = process.geteuid?.()
  if (uid !== undefined && stats.uid !== uid) return Either.left(`it belongs to user ${stats.uid}`)
  await fs.chmod(folder, 0o700)
  const marked = await isMarked(folder)
  for (const name of await fs.readdir(folder)) {
    // Another process may be starting a server now, and that must find the marker.
    if (!marked || name !== marker) await fs.rm(path.join(folder, name), { recursive: true, force: true })
  }
  if (!marked) await fs.writeFile(path.join(folder, marker), markerText, { mode: 0o600 })
  return Either.right(await fs.realpath(folder))
}

const ownFolder = (folder: string): Effect.Effect<Either.Either<string, ServerFault>> =>
  Effect.promise(async () => {
    try {
      return Either.mapLeft(await prepare(folder), (why) => unusable(folder, why))
    } catch (cause) {
      return Either.left(unusable(folder, codeOf(cause, String(cause))))
    }
  })

const temporaryFolder: Effect.Effect<Either.Either<string, ServerFault>, never, Scope.Scope> = Effect.acquireRelease(
  Effect.promise(() =>
    fs.mkdtemp(path.join(tmpdir(), "daybook-mcp-")).then(
      (folder) => Either.right(folder),
      (cause: unknown) => Either.left(unusable(tmpdir(), codeOf(cause, String(cause))))
    )
  ),
  (made) =>
    Either.isLeft(made)
      ? Effect.void
      : Effect.promise(() => fs.rm(made.right, { recursive: true, force: true }).catch(() => undefined))
).pipe(Effect.flatMap((made) => (Either.isLeft(made) ? Effect.succeed(made) : ownFolder(made.right))))

const inNeutral = (server: StdioServer, folder: string, programs: string | undefined): StdioServer => ({
  ...server,
  cwd: folder,
  ...(programs === undefined ? {} : { env: { PATH: programs, ...server.env } })
})

/** Decides how servers start. Creates the empty folder only if a server needs it. */
export const makeStart = Effect.fnUntraced(function* (
  servers: ReadonlyArray<McpServer>,
  { folder, path: programs }: StartOptions
) {
  const trust = yield* ProjectTrust
  const isNeeded = servers.some((server) => isStdio(server) && server.cwd === undefined)
  const neutral = !isNeeded ? undefined : yield* folder === undefined ? temporaryFolder : ownFolder(folder)

  const inFolder = Effect.fnUntraced(function* (server: StdioServer, cwd: string) {
    const real = yield* Effect.tryPromise({
      try: () => fs.realpath(cwd),
      catch: (cause) =>
        new ServerFault({
          details: `its folder ${JSON.stringify(cwd)} cannot be used (${codeOf(cause, String(cause))})`
        })
    })
    const project = yield* projectAt(trust, real)
    const undecided = project.standing.decided
      ? undefined
      : `there is no decision to trust ${JSON.stringify(project.root)}`
    // A folder without instructions can still contain hostile programs.
    const why = notCounting(project) ?? undecided
    if (why === undefined) return { ...server, cwd: real }
    return yield* new ServerFault({ details: `it has a working folder, and ${why}; "daybook trust grant" trusts it` })
  })

  const start: Start = (server) => {
    if (!isStdio(server)) return Effect.succeed(server)
    if (server.cwd !== undefined) return inFolder(server, server.cwd)
    return neutral === undefined
      ? Effect.dieMessage("the start folder of MCP servers was not created")
      : Effect.map(neutral, (found) => inNeutral(server, found, programs))
  }
  return start
})
