import java.util.Map;
import java.util.UUID;

/** What the programs in Java share: checks that stop a round, and the count of rounds. */
final class Rounds {
    private Rounds() {}

    /** A piece of work. */
    interface Round {
        void run() throws Exception;
    }

    static String unique(String name) {
        return name + UUID.randomUUID().toString().substring(0, 8);
    }

    static void ensure(boolean holds, Object what) {
        if (!holds) {
            throw new AssertionError(String.valueOf(what));
        }
    }

    /**
     * Runs all rounds, and exits. Prints `FAILED name: why` for each round that fails, its trace if
     * the environment has `TRACE`, and `N passed, N failed` at the end.
     */
    static void play(Map<String, Round> rounds) {
        int failed = 0;
        for (var round : rounds.entrySet()) {
            try {
                round.getValue().run();
            } catch (Throwable error) {
                failed++;
                System.out.println("FAILED " + round.getKey() + ": " + String.valueOf(error).lines().findFirst());
                if (System.getenv("TRACE") != null) {
                    error.printStackTrace(System.out);
                }
            }
        }
        System.out.println(rounds.size() - failed + " passed, " + failed + " failed");
        System.exit(failed > 0 ? 1 : 0);
    }
}
