/** `resume`: replays the rows of a session and follows its current run. Spec: SO-37, SO-38 in specs/socket.md (IX-6). */
import { Effect } from "effect"
import type { ConnectionClosed } from "../socket/Connection.ts"
import type { Refused } from "../support/Refused.ts"
import type * as Wire from "../wire/Wire.ts"
import * as Client from "./Client.ts"
import { askingOf, type Endpoint, getSession, runtimeOf } from "./Endpoint.ts"
import { replay } from "./Replay.ts"

export const resume = Effect.fn("Served.resume")(function* (
  endpoint: Endpoint,
  client: Client.Client,
  request: Wire.Resume
): Effect.fn.Return<void, Refused | ConnectionClosed> {
  const runtime = yield* runtimeOf(endpoint, request)
  const session = yield* getSession(endpoint, runtime, request)
  if (session.address?.scope === "temp") endpoint.temps.use(client.connection.id, session.address)
  const about: Client.About = { id: undefined }
  const live = yield* replay({
    ...runtime,
    session,
    after: request.after,
    write: client.connection.write,
    asking: askingOf(endpoint, client),
    onStart: Client.showing(runtime.backend, about)
  })
  if (live === undefined) return
  about.run = live.run
  yield* Client.answerBeside(client, endpoint.stopping, about, Client.following(client, live.run, live.rest))
})
