/**
 * Keeps the tools that a server listed last, a file for each server, so that the next process offers them before the server
 * has started. A file that is missing, of another configuration or damaged means that no tools are known. Spec: MC-541.
 */
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { randomUUID } from "node:crypto"
import { Effect, Either, Schema } from "effect"
import { makeFolders } from "@daybook/log/storage/PrivateFile"
import { type McpServer, serverFingerprint } from "./McpServer.ts"
import type { Listing } from "./ToolListing.ts"

export interface ToolCache {
  readonly load: (name: string, server: McpServer) => Effect.Effect<Listing | undefined>
  /** Stores the list. A list that cannot be stored is not known at the next start. */
  readonly save: (name: string, server: McpServer, listing: Listing) => Effect.Effect<void>
}

/** Larger lists are not stored. */
const mostBytes = 8 * 1024 * 1024

const Stored = Schema.parseJson(
  Schema.Struct({
    version: Schema.Literal(2),
    /** The configuration of the server. */
    server: Schema.String,
    tools: Schema.Array(
      Schema.Struct({
        name: Schema.NonEmptyString,
        fingerprint: Schema.String,
        description: Schema.optionalWith(Schema.String, { exact: true }),
        inputSchema: Schema.Unknown
      })
    ),
    leftOut: Schema.Array(Schema.String)
  })
)

const read = async (file: string): Promise<string> => {
  const { size } = await fs.stat(file)
  return size > mostBytes ? "" : fs.readFile(file, "utf8")
}

const replace = async (file: string, text: string): Promise<void> => {
  await makeFolders(path.dirname(file), 0o700)
  const beside = `${file}.${randomUUID()}`
  try {
    await fs.writeFile(beside, text, { mode: 0o600, flag: "wx" })
    await fs.rename(beside, file)
  } finally {
    await fs.rm(beside, { force: true })
  }
}

/** The cache in this folder; without a folder nothing is kept. */
export const make = (folder: string | undefined): ToolCache => {
  if (folder === undefined) return { load: () => Effect.succeed(undefined), save: () => Effect.void }
  // Names of servers are plain (MC-1).
  const fileOf = (name: string) => path.join(folder, `${name}.json`)
  return {
    load: (name, server) =>
      Effect.map(Effect.either(Effect.tryPromise(() => read(fileOf(name)))), (text) => {
        const stored = Either.flatMap(text, Schema.decodeEither(Stored))
        return Either.isRight(stored) && stored.right.server === serverFingerprint(server) ? stored.right : undefined
      }),
    save: (name, server, { leftOut, tools }) =>
      Effect.gen(function* () {
        const text = yield* Schema.encode(Stored)({ version: 2, server: serverFingerprint(server), tools, leftOut })
        const file = fileOf(name)
        const before = yield* Effect.orElseSucceed(
          Effect.tryPromise(() => read(file)),
          () => ""
        )
        if (text === before || Buffer.byteLength(text) > mostBytes) return
        yield* Effect.tryPromise(() => replace(file, text))
      }).pipe(
        Effect.catchAll((error) => Effect.logDebug(`the tools of MCP server "${name}" could not be stored`, error))
      )
  }
}
