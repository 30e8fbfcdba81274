module Greeting
  def self.for(name) = "hello #{name}"
end
