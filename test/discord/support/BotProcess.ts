/** Runs real processes of the bot, which tests kill. */
import { Deferred, Effect, Schema, type Scope } from "effect"
import { spawn } from "node:child_process"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Program from "../../support/Program.ts"
import { waitingFor } from "../../support/Waiting.ts"

/** What the process is given. */
export const Order = Schema.Struct({
  /** Discord's API and the bot's token there. */
  api: Schema.String,
  token: Schema.String,
  /** The Daybook server. */
  server: Schema.String,
  serverToken: Schema.String,
  /** `discord.yaml`, as JSON. */
  settings: Schema.Unknown,
  /** The bot's database. */
  outbox: Schema.String,
  /** By which factor its pauses are shorter. */
  haste: Schema.Number,
  log: Schema.optional(Schema.Literal("All", "Trace", "Debug", "Info", "Warning", "Error", "Fatal", "None"))
})
export type Order = typeof Order.Type

/** The process as one JavaScript file. */
export const program = Program.program(join(fileURLToPath(new URL(".", import.meta.url)), "botMain.ts"))

export interface BotProcess {
  /** Kills it immediately, like a power cut, and waits for its end. */
  readonly kill: Effect.Effect<void>
  /** Asks it to end, and waits for that; returns its exit code. */
  readonly stop: Effect.Effect<number | null>
  /** Its exit code, once it ended by itself. */
  readonly ended: Effect.Effect<number | null>
}

/** Starts the bot; it is killed when the scope closes. */
export const start = (script: string, order: Order): Effect.Effect<BotProcess, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const child = spawn(process.execPath, [script, JSON.stringify(order)], {
        stdio: ["ignore", "inherit", "inherit"]
      })
      const ended = yield* Deferred.make<number | null>()
      child.once("exit", (code) => Deferred.unsafeDone(ended, Effect.succeed(code)))
      const end = (signal: NodeJS.Signals) =>
        Effect.zipRight(
          Effect.sync(() => void child.kill(signal)),
          waitingFor("the end of the bot")(Deferred.await(ended))
        )
      return { kill: Effect.asVoid(end("SIGKILL")), stop: end("SIGTERM"), ended: Deferred.await(ended) }
    }),
    ({ kill }) => kill
  )
