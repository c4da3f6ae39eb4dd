/**
 * Method: nodes of the command over a PostgreSQL of their own, each behind a proxy of its own, and clients that prompt and
 * follow. Meanwhile nodes are killed, stopped, ended and started again, their clocks are stepped, the database crashes, and
 * connections to it are cut and held back, at instants that a seed chooses. With an odd seed, turns of dead nodes go on. The harness' clock is real: it chooses when faults begin and end. At the
 * end the checker says what is wrong.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Exit, Cause, Option } from "effect"
import * as Postgres from "../../../packages/postgres/src/Postgres.ts"
import { projections } from "../../session/support/Invariants.ts"
import * as PostgresServer from "../../support/PostgresServer.ts"
import * as Checker from "./FaultChecker.ts"
import { type FaultClient, faultClient, type Stored } from "./FaultClient.ts"
import { type Asked, dice, type Dice, make as faultModel } from "./FaultModel.ts"
import { faultNode, type FaultNode } from "./FaultNodes.ts"

/**
 * What can happen: `end` is SIGTERM of each node in turn, `frozen` SIGSTOP, `cut` and `held` concern the proxy of a node,
 * `stepped` its wall clock.
 */
export const kinds = ["kill", "frozen", "end", "crash", "cut", "held", "stepped"] as const
export type Kind = (typeof kinds)[number]

export interface Plan {
  readonly seed: number
  readonly nodes: number
  readonly clients: number
  /** How many faults of each kind. */
  readonly faults: Readonly<Partial<Record<Kind, number>>>
  /** Faults that last at the same time. */
  readonly atOnce?: number
  /** Ends the faults after this many prompts were acknowledged. */
  readonly prompts?: number
}

/** Longer than the lease of sessions and shards, five seconds, with the time in which others see that it ended. */
const outlasting = 12_000

/** How long clients may take to see the end of what they prompted, after the last fault. */
const settling = "90 seconds"

const server = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "daybook-faults-"))
    return { folder, ...PostgresServer.start(folder, process.pid, ["fsync=off"]) }
  }),
  ({ folder }) =>
    Effect.sync(() => {
      PostgresServer.stop(folder)
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    })
)

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "daybook-effects-"))),
  (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true, maxRetries: 5 }))
)

/** The kinds in an order that the seed chooses. */
const orderOf = ({ faults }: Plan, roll: Dice): Array<Kind> =>
  kinds
    .flatMap((kind) => Array.from({ length: faults[kind] ?? 0 }, () => kind))
    .map((kind) => [roll(), kind] as const)
    .toSorted(([a], [b]) => a - b)
    .map(([, kind]) => kind)

interface Kill {
  readonly at: number
  readonly node: number
  readonly backAt: number
}

/** Does each fault to a node that no other fault has; a crash and a rolling restart concern all. */
const makeFaults = (nodes: ReadonlyArray<FaultNode>, postgresFolder: string, roll: Dice) => {
  const kills: Array<Kill> = []
  const begun: Record<Kind, number> = { kill: 0, frozen: 0, end: 0, crash: 0, cut: 0, held: 0, stepped: 0 }
  const count = (kind: Kind) => Effect.sync(() => void (begun[kind] += 1))
  const taken = new Set<number>()
  const between = (from: number, to: number) => from + roll() * (to - from)
  const onOne = (does: (node: FaultNode) => Effect.Effect<void>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const free = nodes.filter(({ index, life }) => !taken.has(index) && life !== undefined)
      const node = free[Math.floor(roll() * free.length)]
      if (node === undefined) return Effect.zipRight(Effect.sleep(200), onOne(does))
      taken.add(node.index)
      return Effect.ensuring(
        does(node),
        Effect.sync(() => taken.delete(node.index))
      )
    })
  const mendAfter = (node: FaultNode, millis: number) =>
    Effect.ensuring(
      Effect.sleep(millis),
      Effect.sync(() => node.proxy.mend())
    )
  const faults: Readonly<Record<Kind, Effect.Effect<void>>> = {
    kill: onOne((node) =>
      Effect.gen(function* () {
        const at = Date.now()
        yield* node.end("SIGKILL", roll() < 0.5 ? 300 : outlasting)
        yield* node.up
        kills.push({ at, node: node.index, backAt: Date.now() })
      })
    ),
    frozen: onOne((node) =>
      Effect.gen(function* () {
        const { process } = yield* node.up
        yield* Effect.acquireUseRelease(
          process.signal("SIGSTOP"),
          () => Effect.sleep(outlasting + roll() * 3_000),
          () => process.signal("SIGCONT")
        )
      })
    ),
    end: Effect.forEach(
      nodes,
      (node) =>
        taken.has(node.index)
          ? Effect.void
          : Effect.suspend(() => {
              taken.add(node.index)
              return Effect.ensuring(
                Effect.all([count("end"), node.end("SIGTERM", 100), node.up], { discard: true }),
                Effect.sync(() => taken.delete(node.index))
              )
            }),
      { discard: true }
    ),
    crash: Effect.promise(() => PostgresServer.crash(postgresFolder)),
    // One of four outlasts the leases.
    cut: onOne((node) =>
      Effect.zipRight(
        Effect.sync(() => node.proxy.cut()),
        mendAfter(node, roll() < 0.25 ? outlasting : between(0, 3_000))
      )
    ),
    held: onOne((node) =>
      Effect.zipRight(
        Effect.sync(() => node.proxy.hold()),
        mendAfter(node, roll() < 0.25 ? between(8_000, 12_000) : between(100, 3_000))
      )
    ),
    // By up to ten minutes, forward or backward, and back.
    stepped: onOne((node) =>
      Effect.acquireUseRelease(
        Effect.sync(() => node.clock.step(Math.round(between(-600, 600)))),
        () => Effect.sleep(between(1_500, 5_000)),
        () => Effect.sync(() => node.clock.step(0))
      )
    )
  }
  /** Each node that ends with SIGTERM counts. */
  const fault = (kind: Kind) => (kind === "end" ? faults.end : Effect.zipRight(count(kind), faults[kind]))
  return { begun, fault, kills }
}

const quantile = (sorted: ReadonlyArray<number>, part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN

const spread = (millis: ReadonlyArray<number>) => {
  const sorted = millis.toSorted((a, b) => a - b)
  return { times: sorted.length, p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99), most: sorted.at(-1) }
}

const sessionOf = ({ prompt }: Asked): string => prompt.split("x")[0] ?? ""

/** How long sessions of a killed node that stayed away did not run. */
const afterKills = (kills: ReadonlyArray<Kill>, asked: ReadonlyArray<Asked>): ReadonlyArray<number> => {
  const sessions = [...new Set(asked.map(sessionOf))]
  return kills.flatMap(({ at, backAt, node }) =>
    sessions.flatMap((session) => {
      const own = asked.filter((each) => sessionOf(each) === session)
      const last = own.findLast(({ began }) => began < at)
      const next = own.find(({ began, node: other }) => began >= at && other !== node)
      if (last?.node !== node || next === undefined || next.began > backAt) return []
      return [next.began - at]
    })
  )
}

/** Milliseconds from the end of a call, where a session is handed over, to the start of the next turn, as the log has it. */
const pauseAfter = (call: string | undefined, heard: ReadonlyArray<Stored>): ReadonlyArray<number> => {
  const boundary = heard.findLastIndex(({ data }) => call !== undefined && data["callID"] === call)
  const next = boundary < 0 ? undefined : heard.slice(boundary).find(({ type }) => type === "session.next.step.started")
  return next === undefined ? [] : [Number(next["created"]) - Number(heard[boundary]?.["created"])]
}

/** How long activities that moved between two turns did not run. */
const handOvers = (asked: ReadonlyArray<Asked>, clients: ReadonlyArray<FaultClient>): ReadonlyArray<number> => {
  const last = new Map<string, Asked>()
  return asked.flatMap((each) => {
    const before = last.get(each.prompt)
    last.set(each.prompt, each)
    const isMoved = before?.ended !== undefined && before.step < each.step && before.node !== each.node
    const client = clients.find(({ sessionID }) => sessionID.slice(4) === sessionOf(each).slice(4))
    return isMoved && client !== undefined ? pauseAfter(before.call, client.heard) : []
  })
}

/** Runs the plan, prints what happened, and returns what is wrong. */
export const survives = (plan: Plan) =>
  Effect.gen(function* () {
    console.log(`seed ${plan.seed}: ${JSON.stringify(plan)}`)
    const roll = dice(plan.seed)
    const recovery = plan.seed % 2 === 0 ? "manual" : "resume"
    const [database, here] = [yield* server, yield* folder]
    const [directory, effects] = [join(here, "work"), join(here, "effects")]
    mkdirSync(directory)
    writeFileSync(effects, "")
    const model = yield* faultModel(roll, effects)
    const nodes = yield* Effect.forEach(
      Array.from({ length: plan.nodes }, (_, index) => index),
      (index) => faultNode(index, database.url, model, recovery),
      { concurrency: "unbounded" }
    )
    yield* Effect.forEach(nodes, ({ up }) => up, { discard: true })
    const clients = yield* Effect.forEach(
      Array.from({ length: plan.clients }, (_, index) => index),
      (index) => faultClient(`ses_${plan.seed}c${index}`, directory, nodes, roll)
    )
    const began = Date.now()
    let isOver = false
    const prompted = () => clients.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0)
    const isDone = () => isOver && prompted() >= (plan.prompts ?? 0)
    const working = yield* Effect.fork(
      Effect.forEach(clients, ({ work }) => work(isDone), { concurrency: "unbounded", discard: true })
    )
    const { begun, fault, kills } = makeFaults(nodes, database.folder, roll)
    yield* Effect.forEach(
      orderOf(plan, roll),
      (kind) => Effect.zipRight(Effect.sleep(100 + roll() * 1_000), fault(kind)),
      { concurrency: plan.atOnce ?? 1, discard: true }
    )
    isOver = true
    yield* Effect.forEach(nodes, ({ up }) => up, { discard: true })
    const ended = yield* Effect.timeoutOption(Effect.exit(Effect.asVoid(working)), settling)
    const checked = yield* Checker.check(clients, nodes, effects)
    const rebuilt = yield* Effect.exit(Effect.provide(projections, Postgres.layer({ url: database.url })))
    const surprises = [...clients, ...nodes].flatMap((each) => each.surprises)
    const isGentle = kinds.every((kind) => kind === "end" || !plan.faults[kind])
    const problems = [
      ...checked.problems,
      ...(isGentle ? checked.cut : []),
      ...surprises,
      ...(Exit.isFailure(rebuilt) ? [`projections: ${Cause.pretty(rebuilt.cause).slice(0, 3000)}`] : []),
      ...(Option.isNone(ended) ? ["clients still wait"] : [])
    ]
    const figures = {
      seconds: Math.round((Date.now() - began) / 1000),
      recovery,
      faults: begun,
      requests: model.asked.length,
      ...checked,
      problems: problems.length,
      connections: clients.reduce((sum, { connections }) => sum + connections(), 0),
      afterKill: spread(afterKills(kills, model.asked)),
      // The times of events are those of the nodes' clocks.
      ...(plan.faults.stepped ? {} : { handOver: spread(handOvers(model.asked, clients)) })
    }
    console.log(JSON.stringify(figures, undefined, 1))
    const errors = nodes.flatMap((node) => node.errors)
    if (problems.length > 0) console.log([...problems, "errors of nodes:", ...errors.slice(0, 40)].join("\n"))
    return problems
  }).pipe(Effect.scoped)
