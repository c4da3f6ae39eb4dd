/**
 * What goes wrong, and when: one-shot faults that a test scripts, and a seeded plan that draws one for each request and event.
 * The draws depend on the seed and the number of the request alone, so a run repeats as far as its requests keep their order.
 */
import { FastCheck, Utils } from "effect"

/** A fault of one REST request. */
export type Fault =
  /** Refused before it has an effect. */
  | { readonly kind: "limited"; readonly seconds: number; readonly global?: boolean }
  | { readonly kind: "failed"; readonly status: number }
  /** It has its effect, and the reply says that it failed. */
  | { readonly kind: "failedAfter"; readonly status: number }
  /** It has its effect, and the connection is destroyed. */
  | { readonly kind: "lost" }
  /** It has its effect, and no reply ever comes. */
  | { readonly kind: "silent" }
  /** It has its effect, and the reply is no HTTP. */
  | { readonly kind: "garbled" }
  /** The connection is destroyed before it has an effect. */
  | { readonly kind: "refused" }
  /** It is handled after this time. */
  | { readonly kind: "late"; readonly millis: number }

export interface Scripted {
  readonly method: string
  readonly path: RegExp
  readonly fault: Fault
  /** How many matching requests it meets; default 1. */
  times?: number
}

/** Chances of 1,000, for each request and event. */
export interface Rates {
  readonly limited?: number
  readonly failed?: number
  readonly failedAfter?: number
  readonly lost?: number
  readonly silent?: number
  readonly refused?: number
  readonly late?: number
  /** An event is delivered twice. */
  readonly redelivered?: number
  /** A resume repeats events that the client has seen. */
  readonly rewound?: number
}

export interface FaultPlan {
  /** Faults that the next matching requests meet, before those that are drawn. */
  readonly scripted: Array<Scripted>
  /** Tests may change the chances while they run. */
  rates: Rates
  readonly ofRequest: (method: string, path: string) => Fault | undefined
  /** How often an event is sent. */
  readonly deliveries: (type: string) => number
  /** By how many events a resume starts too early. */
  readonly rewind: () => number
}

const drawn = (random: Utils.PCGRandom, rates: Rates): Fault | undefined => {
  const faults: ReadonlyArray<readonly [number | undefined, () => Fault]> = [
    [rates.limited, () => ({ kind: "limited", seconds: 0.05 + random.number() / 5 })],
    [rates.failed, () => ({ kind: "failed", status: 500 + random.integer(4) })],
    [rates.failedAfter, () => ({ kind: "failedAfter", status: 502 })],
    [rates.lost, () => ({ kind: "lost" })],
    [rates.silent, () => ({ kind: "silent" })],
    [rates.refused, () => ({ kind: "refused" })],
    [rates.late, () => ({ kind: "late", millis: random.integer(60) })]
  ]
  let point = random.integer(1_000)
  for (const [rate = 0, make] of faults) {
    if (point < rate) return make()
    point -= rate
  }
  return undefined
}

export const makePlan = (seed: number, rates: Rates = {}): FaultPlan => {
  const requests = new Utils.PCGRandom(seed)
  const events = new Utils.PCGRandom(seed + 1)
  const plan: FaultPlan = {
    scripted: [],
    rates,
    ofRequest: (method, path) => {
      const index = plan.scripted.findIndex((one) => one.method === method && one.path.test(path))
      const scripted = plan.scripted[index]
      if (scripted === undefined) return drawn(requests, plan.rates)
      const times = scripted.times ?? 1
      if (times <= 1) plan.scripted.splice(index, 1)
      else scripted.times = times - 1
      return scripted.fault
    },
    deliveries: () => (events.integer(1_000) < (plan.rates.redelivered ?? 0) ? 2 : 1),
    rewind: () => (events.integer(1_000) < (plan.rates.rewound ?? 0) ? 1 + events.integer(20) : 0)
  }
  return plan
}

/** Chances that a property draws. */
export const ratesArbitrary: FastCheck.Arbitrary<Rates> = FastCheck.record({
  limited: FastCheck.integer({ min: 0, max: 50 }),
  failed: FastCheck.integer({ min: 0, max: 50 }),
  failedAfter: FastCheck.integer({ min: 0, max: 50 }),
  lost: FastCheck.integer({ min: 0, max: 100 }),
  refused: FastCheck.integer({ min: 0, max: 50 }),
  late: FastCheck.integer({ min: 0, max: 100 }),
  redelivered: FastCheck.integer({ min: 0, max: 200 })
})
