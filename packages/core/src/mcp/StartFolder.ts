/**
 * Where the process of a server starts. Without a `cwd` that is an empty folder of ours: a project must not decide what
 * `npx` runs. With one it needs the person's trust in that folder. Spec: MC-32..MC-35 in specs/mcp.md.
 */
import * as fs from "node:fs/promises"
import { tmpdir } from "node:os"
import * as path from "node:path"
import { Effect, Either, type Scope } from "effect"
import { makeFolders } from "../storage/MakeFolders.ts"
import { notCounting, projectAt } from "../trust/Project.ts"
import { ProjectTrust } from "../trust/ProjectTrust.ts"
import { ServerFault } from "./Connection.ts"
import { isStdio, type McpServer, type StdioServer } from "./McpServer.ts"

/** Where and with what the processes of servers without `cwd` start. */
export interface StartOptions {
  /** Made, emptied and kept for this user alone; without it, a folder in the system's one for temporary files. */
  readonly folder?: string | undefined
  /** Their `PATH`, unless a server's `env` has one; this process's own by default. */
  readonly path?: string | undefined
}

/** The server as it is to be started, or why it is not. */
export type Start = (server: McpServer) => Effect.Effect<McpServer, ServerFault>

/** Package managers look for their project upwards; this file ends the search. */
const marker = "package.json"
const markerText = `{"name":"daybook-servers","private":true}\n`

const codeOf = (cause: unknown): string =>
  cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : String(cause)

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

/** Makes the folder this user's own, with the marker and nothing else. */
const prepare = async (folder: string): Promise<Either.Either<string, string>> => {
  await makeFolders(folder, 0o700)
  const stats = await fs.lstat(folder)
  if (!stats.isDirectory()) return Either.left("it is not a folder")
  const uid = process.geteuid?.()
  if (uid !== undefined && stats.uid !== uid) return Either.left(`it belongs to user ${stats.uid}`)
  await fs.chmod(folder, 0o700)
  const marked = await isMarked(folder)
  for (const name of await fs.readdir(folder)) {
    // A server that another process starts now must find the marker.
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
      return Either.left(unusable(folder, codeOf(cause)))
    }
  })

const temporaryFolder: Effect.Effect<Either.Either<string, ServerFault>, never, Scope.Scope> = Effect.acquireRelease(
  Effect.promise(() =>
    fs.mkdtemp(path.join(tmpdir(), "daybook-mcp-")).then(
      (folder) => Either.right(folder),
      (cause: unknown) => Either.left(unusable(tmpdir(), codeOf(cause)))
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

/** How servers start: the neutral folder is made when one of them needs it, and not before. */
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
        new ServerFault({ details: `its folder ${JSON.stringify(cwd)} cannot be used (${codeOf(cause)})` })
    })
    const project = yield* projectAt(trust, real)
    const undecided = project.standing.decided
      ? undefined
      : `nobody has decided to trust ${JSON.stringify(project.root)}`
    // That a folder brings no instructions says nothing of the programs in it.
    const why = notCounting(project) ?? undecided
    if (why === undefined) return { ...server, cwd: real }
    return yield* new ServerFault({ details: `it starts in a folder, and ${why}; daybook trust grant decides` })
  })

  const start: Start = (server) => {
    if (!isStdio(server)) return Effect.succeed(server)
    if (server.cwd !== undefined) return inFolder(server, server.cwd)
    return neutral === undefined
      ? Effect.dieMessage("no folder was made for MCP servers to start in")
      : Effect.map(neutral, (found) => inNeutral(server, found, programs))
  }
  return start
})
