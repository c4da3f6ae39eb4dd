/** Streams of the client over hundreds of connections that break. */
import { layer } from "@effect/vitest"
import { brokenFeed, brokenSession } from "../client/support/Broken.ts"
import { layer as served } from "../client/support/ServedClient.ts"

layer(served())("over hundreds of broken connections", (it) => {
  it.scoped("HT-61: a session's events come once, in order, over 200 connections", () => brokenSession(300, 20))

  it.scoped("HT-61: the feed gives the events of all sessions once, in order", () => brokenFeed(20, 80))
})
