/**
 * A Discord on a loopback port: REST v10 and gateway v10, as discord.js speaks them, over real HTTP and WebSockets. Its state
 * is `world`; members act through `People.ts`, and faults come from `Faults.ts`.
 */
import { GatewayIntentBits } from "discord.js"
import { Effect, type Scope } from "effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { waitingFor } from "../../support/Waiting.ts"
import { type FaultPlan, makePlan } from "./Faults.ts"
import * as Gateway from "./Gateway.ts"
import * as RestServer from "./RestServer.ts"
import { changed, type Channel, type Limit, makeWorld, type Settings, type World } from "./World.ts"

/** Discord's documented and observed limits, without those of rare routes. */
export const discordLimits = (method: string, route: string): Limit => {
  if (route.includes("/reactions/")) return { limit: 1, window: 250 }
  if (/^\/channels\/:channel\/messages(?:\/:message)?$/.test(route) && method !== "GET")
    return { limit: 5, window: 5_000 }
  if (route.endsWith("/threads")) return { limit: 50, window: 300_000 }
  if (route === "/channels/:channel" && method === "PATCH") return { limit: 2, window: 600_000 }
  return { limit: 50, window: 1_000 }
}

/** The same limits in windows that are shorter by a factor, for runs that cannot wait for minutes. */
export const fasterLimits =
  (factor: number) =>
  (method: string, route: string): Limit => {
    const { limit, window } = discordLimits(method, route)
    return { limit, window: Math.max(1, Math.ceil(window / factor)) }
  }

const allIntents = Object.values(GatewayIntentBits).reduce<number>(
  (sum, bit) => (typeof bit === "number" ? sum | bit : sum),
  0
)

const defaults: Settings = {
  token: "MTIz.loopback.token",
  intents: allIntents,
  nonceWindow: 3 * 60_000,
  limitOf: discordLimits,
  global: { limit: 50, window: 1_000 },
  heartbeat: 41_250,
  kept: 2_000
}

export interface Loopback {
  readonly world: World
  /** For `new Client({ rest: { api } })`. */
  readonly api: string
  readonly gateway: Gateway.Gateway
  /** The channel that every world starts with. */
  readonly general: Channel
  /** Moves the server's clock. */
  readonly moveClock: (millis: number) => void
  /** Waits until the state is as the predicate says. */
  readonly when: (what: string | (() => string), holds: (world: World) => boolean) => Effect.Effect<void>
}

const until = (world: World, what: string | (() => string), holds: (world: World) => boolean) =>
  waitingFor(what)(
    Effect.async<void>((resume) => {
      const watcher = () => {
        if (!holds(world)) return
        world.watchers.delete(watcher)
        resume(Effect.void)
      }
      world.watchers.add(watcher)
      watcher()
      return Effect.sync(() => world.watchers.delete(watcher))
    })
  )

/** Listens until the scope closes. */
export const make = (
  settings: Partial<Settings> = {},
  faults: FaultPlan = makePlan(1)
): Effect.Effect<Loopback, never, Scope.Scope> =>
  Effect.gen(function* () {
    const world = makeWorld({ ...defaults, ...settings }, faults)
    const server = yield* Effect.acquireRelease(
      Effect.async<ReturnType<typeof createServer>>((resume) => {
        const server = createServer(RestServer.handler(world))
        server.on("connection", (socket) => {
          world.connections.add(socket)
          socket.once("close", () => {
            world.connections.delete(socket)
            changed(world)
          })
        })
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      (server) => Effect.sync(() => (server.closeAllConnections(), server.close()))
    )
    // A listening server has an address of this form.
    world.address.port = (server.address() as AddressInfo).port
    const gateway = yield* Gateway.serve(world, server)
    const [general] = world.channels.values()
    if (general === undefined) return yield* Effect.dieMessage("the guild has a channel")
    return {
      world,
      gateway,
      general,
      api: `http://127.0.0.1:${world.address.port}/api`,
      moveClock: (millis) => {
        world.clock.offset += millis
        changed(world)
      },
      when: (what, holds) => until(world, what, holds)
    }
  })
