/**
 * A guild with a real Daybook server, whose model is `Talker.ts`, and a bot that works in one channel: what the judgements of
 * the bot run. `Published.ts` compares what the guild shows with what the sessions say.
 */
import { Context, Effect, Layer, type Scope } from "effect"
import { join } from "node:path"
import { build } from "../../../packages/core/src/agent/BuiltinAgents.ts"
import * as Daybook from "../../../packages/embedded/src/Daybook.ts"
import * as Asks from "../../../packages/server/src/shared/Asks.ts"
import * as ServedApi from "../../server/http/support/ServedApi.ts"
import { token as serverToken } from "../../server/http/support/ServedApi.ts"
import { temporaryFolder } from "../../support/Harness.ts"
import type { Order } from "./BotProcess.ts"
import * as Faults from "./Faults.ts"
import * as Loopback from "./Loopback.ts"
import * as People from "./People.ts"
import * as Talker from "./Talker.ts"
import type { Channel, Settings, User, World } from "./World.ts"

export interface Guild {
  readonly discord: Loopback.Loopback
  readonly world: World
  readonly ann: User
  readonly order: Order
  /** The services of the runtime that serves the sessions. */
  readonly runtime: Context.Context<Daybook.Services>
}

export interface Options {
  readonly seed?: number
  readonly rates?: Faults.Rates
  readonly settings?: Partial<Settings>
  /** How long the model takes for each piece of an answer. */
  readonly pace?: number
  readonly haste?: number
}

const everyone = { everyone: true }

/** Prompts that steer join the activity that runs: it may have many turns. */
const talks = { ...build, name: "talks", turnLimit: 1_000_000 }

/** The guild, the server and what a bot process is given, until the scope closes. */
export const make = (options: Options = {}): Effect.Effect<Guild, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { haste = 10, pace = 5, rates = {}, seed = 1, settings = {} } = options
    const folder = yield* temporaryFolder
    const discord = yield* Loopback.make(settings, Faults.makePlan(seed, rates))
    const asks = Asks.make()
    const runtime = yield* Layer.build(
      Layer.scoped(ServedApi.Served, ServedApi.serve({ asks })).pipe(
        Layer.provideMerge(
          Daybook.layer({
            filename: join(folder, "daybook.db"),
            permissionAsker: asks.layer,
            questions: true,
            agents: [talks]
          })
        ),
        Layer.provide(Talker.layer(pace)),
        Layer.orDie
      )
    )
    const { world } = discord
    return {
      discord,
      world,
      ann: People.join(world, "ann"),
      runtime,
      order: {
        api: discord.api,
        token: world.settings.token,
        server: Context.get(runtime, ServedApi.Served).url,
        serverToken,
        settings: {
          channels: {
            [discord.general.id]: { folder, agent: "talks", ask: everyone, approve: everyone, administer: everyone }
          }
        },
        outbox: join(folder, "outbox.db"),
        haste
      }
    }
  })

/** The threads of the guild. */
export const threads = ({ world }: Guild): ReadonlyArray<Channel> =>
  [...world.channels.values()].filter(({ deleted, thread }) => thread !== undefined && !deleted)
