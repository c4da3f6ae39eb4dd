/**
 * Runs before each file. `it.layer` of `@effect/vitest` puts a layer's own `effect` and `scoped` on the one `it` that
 * files of a worker share: here every file gets the plain ones back.
 */
import { effect, flakyTest, it, layer, live, prop, scoped, scopedLive } from "@effect/vitest"

Object.assign(it, { effect, flakyTest, layer, live, prop, scoped, scopedLive })
