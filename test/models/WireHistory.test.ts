import { Prompt } from "@effect/ai"
import { assert, it } from "@effect/vitest"
import { systemAsUser } from "../../packages/models/src/internal/WireHistory.ts"

const said = (prompt: Prompt.Prompt) =>
  prompt.content.map(({ content, role }) => {
    const [first] = content
    return [role, typeof first === "string" ? content : first?.type === "text" ? first.text : first]
  })

const user = (text: string) => ({ role: "user" as const, content: [{ type: "text" as const, text }] })
const system = (content: string) => ({ role: "system" as const, content })

it("MD-12: system messages at the head stay, later ones join the conversation in their place", () => {
  const update = ["user", "<system-update>\nb\n</system-update>"]
  assert.deepStrictEqual(said(systemAsUser(Prompt.make([system("a"), user("x"), system("b"), user("y")]))), [
    ["system", "a"],
    ["user", "x"],
    update,
    ["user", "y"]
  ])
  assert.deepStrictEqual(said(systemAsUser(Prompt.make([user("x"), system("b")]))), [["user", "x"], update])
  assert.deepStrictEqual(said(systemAsUser(Prompt.make([system("a"), system("b")]))), [
    ["system", "a"],
    ["system", "b"]
  ])
})
