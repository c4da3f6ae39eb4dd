/** Answers requests about the server itself. Spec: HT-540, HT-541 in specs/http.md. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect } from "effect"
import { Api } from "@daybook/api"
import { EventLog } from "@daybook/log/log/EventLog"
import * as Drain from "./Drain.ts"
import * as Prometheus from "./Prometheus.ts"
import { refusedQuery } from "./Routes.ts"

/** A write is tried at most this often: anyone may ask for the health. */
const probeEvery = "1 second"

export const layer = (version: string) =>
  HttpApiBuilder.group(Api, "server", (handlers) =>
    Effect.gen(function* () {
      const { begun } = yield* Drain.Drain
      const { probe } = yield* EventLog
      // A client that leaves does not stop the write that others wait for.
      const writable = yield* Effect.cachedWithTTL(Effect.uninterruptible(Effect.exit(probe)), probeEvery)
      return handlers
        .handle("health", ({ request: { url } }) =>
          Effect.gen(function* () {
            const refused = refusedQuery({ method: "GET", path: "/health" }, url)
            if (refused !== undefined) return yield* refused
            if (yield* begun) return { status: "draining" as const, version }
            yield* Effect.flatten(writable)
            return { status: "ok" as const, version }
          })
        )
        .handle("serverMetrics", () => Prometheus.ofProcess(version))
    })
  )
