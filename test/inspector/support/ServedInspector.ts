/** Serves a runtime with a scripted model and the inspector on a free port; opens its pages in Chromium. */
import type { Browser } from "playwright-core"
import { Effect, Layer } from "effect"
import * as Inspector from "../../../packages/inspector/src/Inspector.ts"
import type * as Daybook from "../../../packages/embedded/src/Daybook.ts"
import * as ServedApi from "../../server/http/support/ServedApi.ts"
import type * as ScriptedModel from "../../support/ScriptedModel.ts"
import { visit as visitWith, type VisitOptions } from "../../watch/support/Chromium.ts"
import { bundled } from "../../../packages/inspector/scripts/page.mjs"

/** The runtime, its API, the inspector, and the address. */
export const layer = (
  options: Partial<Daybook.Options> = {},
  model: Parameters<typeof ScriptedModel.layer>[0] = {},
  serving: ServedApi.Serving = {}
) =>
  Layer.unwrapEffect(
    Effect.map(
      Effect.promise(() => bundled()),
      (assets) => ServedApi.layer(options, model, { ...serving, pages: Inspector.pages(assets) })
    )
  )

/** Opens the inspector at a place such as `/sessions/ses_1/events`, with the server's token. */
export const visit = Effect.fnUntraced(function* (browser: Browser, place = "/", options?: VisitOptions) {
  const { url } = yield* ServedApi.Served
  const visited = yield* visitWith(browser, `${url}/#token=${ServedApi.token}`, options)
  if (place !== "/") {
    yield* Effect.promise(() => visited.page.evaluate(`location.hash = ${JSON.stringify(place)}`))
  }
  return visited
})
