/** The bot as a process of its own, bundled and started by `BotProcess.ts`. It runs until it is ended. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Logger, LogLevel, Redacted, Schema } from "effect"
import * as Bot from "../../../packages/discord/src/Bot.ts"
import * as Book from "../../../packages/discord/src/live/Book.ts"
import { Settings } from "../../../packages/discord/src/domain/Settings.ts"
import { Order } from "./BotProcess.ts"
import { hasty } from "../../support/HastyClock.ts"

const order = Schema.decodeUnknownSync(Schema.parseJson(Order))(process.argv[2])

Bot.serve({
  settings: Schema.decodeUnknownSync(Settings)(order.settings),
  token: Redacted.make(order.token),
  outbox: order.outbox,
  api: order.api
}).pipe(
  Effect.provide(Book.layer({ url: order.server, token: Redacted.make(order.serverToken) })),
  Logger.withMinimumLogLevel(LogLevel.fromLiteral(order.log ?? "None")),
  Effect.withClock(hasty(order.haste)),
  NodeRuntime.runMain({ disableErrorReporting: order.log === undefined })
)
