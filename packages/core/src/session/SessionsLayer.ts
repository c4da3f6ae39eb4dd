/** Assembles the facade from what it does with sessions. Contract: `Sessions.ts`. */
import * as EventLoop from "@daybook/log/support/EventLoop"
import { Effect, Layer } from "effect"
import * as Branching from "./Branching.ts"
import * as Changing from "./Changing.ts"
import * as Creation from "./Creation.ts"
import * as Forking from "./Forking.ts"
import * as Placement from "./Placement.ts"
import * as Reading from "./Reading.ts"
import * as Running from "./Running.ts"
import { Sessions } from "./Sessions.ts"
import * as Undoing from "./Undoing.ts"

const make = Effect.gen(function* () {
  const existing = yield* Placement.makeExisting
  const locations = yield* Placement.makeLocations
  const placements = yield* Placement.make
  const verbs = Sessions.of({
    ...(yield* Creation.make(locations, placements)),
    ...(yield* Reading.make(existing, locations)),
    ...(yield* Running.make(existing)),
    ...(yield* Changing.makeSwitching(existing)),
    ...(yield* Changing.make(existing, locations, placements)),
    ...(yield* Branching.make(existing)),
    ...(yield* Forking.make(existing)),
    ...(yield* Undoing.make(existing)),
    ...(yield* Undoing.makeRedoing(existing)),
    addressed: placements.addressed
  })
  return EventLoop.sharingAll(verbs)
})

/** The facade. */
export const layer = Layer.effect(Sessions, make)
