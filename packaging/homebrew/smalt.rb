# packaging/homebrew.py replaces the words in capitals.
class Smalt < Formula
  desc "DESCRIPTION"
  homepage "https://www.npmjs.com/package/smalt"
  version "VERSION"
  license any_of: LICENCES

PLATFORMS

  def install
    bin.install Dir["bin/*"]
  end

  service do
    run [opt_bin/"smalt", "--location", var/"smalt"]
    keep_alive true
    log_path var/"log/smalt.log"
    error_log_path var/"log/smalt.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/smalt --version")
  end
end
