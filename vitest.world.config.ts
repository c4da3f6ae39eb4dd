import { suite } from "./vitest.suite.ts"

/**
 * `npm run test:world`, the files `*.world.test.ts`: contracts over HTTP, SSH, in containers and in sandboxes, real browsers,
 * processes of the command, kills, and packages from outside of the repository.
 */
export default suite("world")
