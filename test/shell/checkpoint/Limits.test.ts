/** The limits of checkpoints. Method: the same code with smaller ones, and the real sizes where a sparse file is enough. */
import { expect, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import type { AllLimits } from "../../../packages/shell/src/checkpoint/Checkpoints.ts"
import * as LocalTransport from "../../../packages/shell/src/transport/LocalTransport.ts"
import { type Workspace, workspaceOn } from "../support/CheckpointContract.ts"

const limited = (
  title: string,
  limits: Partial<AllLimits>,
  use: (workspace: Workspace) => Effect.Effect<void, unknown, Scope.Scope>
) => it.scopedLive(title, () => Effect.flatMap(workspaceOn(LocalTransport.makeUnconfined(), { limits }), use))

/** Makes checkpoints of a file with changing content; returns their ids. */
const series = ({ checkpoints, sh }: Workspace, count: number) =>
  Effect.forEach(Array.from({ length: count }).keys(), (number) =>
    Effect.zipRight(
      sh(`echo ${number} >file`),
      Effect.map(checkpoints.create("asked", `${number}`), ({ id }) => id)
    )
  )

const listed = ({ checkpoints }: Workspace) =>
  Effect.map(checkpoints.list, (all) => all.map(({ label }) => Number(label)))

limited("SL-154: the last checkpoints are kept, up to the limit, and an older one is not found", { kept: 3 }, (place) =>
  Effect.gen(function* () {
    const [first] = yield* series(place, 5)
    expect(yield* listed(place)).toEqual([4, 3, 2])
    expect(yield* Effect.flip(place.checkpoints.restore(first))).toMatchObject({ _tag: "CheckpointNotFound" })
  })
)

limited("SL-155: a file above 32 MiB is left alone, and one of 32 MiB is captured", {}, ({ checkpoints, sh }) =>
  Effect.gen(function* () {
    yield* sh("truncate -s 33554432 whole; truncate -s 33554433 larger")
    const { id } = yield* checkpoints.create("asked")
    yield* sh("for f in whole larger; do printf x | dd of=$f conv=notrunc 2>/dev/null; done")
    expect(yield* checkpoints.restore(id)).toMatchObject({ changed: ["whole"], files_changed: 1 })
    expect(yield* sh("head -c 1 whole; head -c 1 larger")).toBe("\0x")
  })
)

limited("SL-155: more than 1 GiB of new and changed files is an error", {}, ({ checkpoints, sh }) =>
  Effect.gen(function* () {
    yield* sh("for i in $(seq 33); do truncate -s 33554432 $i; done")
    const error = yield* Effect.flip(checkpoints.create("asked"))
    expect(error).toMatchObject({ reason: "too large", details: "new and changed files exceed 1 GiB" })
    expect(yield* checkpoints.list).toEqual([])
  })
)

limited("SL-155: files up to the limit together are captured, and unchanged ones do not count", { bytes: 10 }, (each) =>
  Effect.gen(function* () {
    const { checkpoints, sh } = each
    yield* sh("printf 12345 >a; printf 12345 >b")
    yield* checkpoints.create("asked")
    yield* sh("printf 1234567890 >c")
    yield* checkpoints.create("asked")
    yield* sh("printf 12345678901 >c")
    expect(yield* Effect.flip(checkpoints.create("asked"))).toMatchObject({ reason: "too large" })
  })
)

limited("SL-167: a repository above its size loses its older half", { storeKiB: 1 }, (place) =>
  Effect.gen(function* () {
    yield* series(place, 4)
    expect(yield* listed(place)).toEqual([3, 2])
  })
)

limited("SL-166: a checkpoint that takes too long is given up, and says so", { patience: "1 millis" }, (place) =>
  Effect.gen(function* () {
    const error = yield* Effect.flip(place.checkpoints.create("asked"))
    expect(error).toMatchObject({ reason: "failed", details: "it took longer than 1 millis" })
  })
)
