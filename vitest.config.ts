import { suite } from "./vitest.suite.ts"

/** `npm test`: every law once, in the cheapest place where it is true. It passes on a machine that has only Node. */
export default suite("test")
