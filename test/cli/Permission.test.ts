import { Answer, type PermissionRequest, type SessionID } from "@daybook/core"
import { assert, describe, it } from "@effect/vitest"
import { answer, question } from "../../packages/cli/src/PermissionPrompt.ts"

const request: PermissionRequest = {
  sessionID: "ses_a" as SessionID,
  callID: "call_1",
  agent: "build",
  location: { directory: "/work" },
  permission: "bash",
  resources: ["rm -rf build\u001b[2K"],
  title: "Run rm -rf build",
  always: ["rm *"]
}

describe("PermissionPrompt", () => {
  it("CL-36: what is typed becomes the answer", () => {
    assert.deepStrictEqual(answer("y", request), Answer.Once())
    assert.deepStrictEqual(answer(" Yes ", request), Answer.Once())
    assert.deepStrictEqual(answer("a", request), Answer.Always())
    assert.deepStrictEqual(answer("n", request), Answer.Decline())
    assert.deepStrictEqual(answer("", request), Answer.Decline())
    assert.deepStrictEqual(answer("use trash", request), Answer.Correct({ message: "use trash" }))
    assert.deepStrictEqual(answer(undefined, request), Answer.Unavailable())
  })

  it("CL-36: always is offered only when there is something to save", () => {
    assert.include(question(request).prompt, "[a]lways (rm *)")
    const once = { ...request, always: [] }
    assert.notInclude(question(once).prompt, "always")
    assert.deepStrictEqual(answer("a", once), Answer.Correct({ message: "a" }))
  })

  it("CL-30: the question shows what a command would hide from a terminal", () => {
    assert.include(question(request).shown, "rm -rf build␛[2K")
  })
})
